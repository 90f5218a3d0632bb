"""What people write and what we write, as frozen pydantic models."""
