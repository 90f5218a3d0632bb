"""The serving model: numpy only, arrays in, arrays out. README.md has every formula."""
