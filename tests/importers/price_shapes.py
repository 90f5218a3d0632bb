# ruff: noqa: E501
"""Small price files in the shapes of SkyPilot's and gpuhunt's catalogs; prices are made up."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from planner.catalog import load_catalog
from planner.catalog.lookup import Names
from planner.importers.price_rows import Imported, Known, PriceFile
from planner.importers.prices import read_prices

AWS_HEAD = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
    "AvailabilityZone,Arch"
)
P5_INFO = (
    "\"{'Gpus': [{'Name': 'H100', 'Manufacturer': 'NVIDIA', 'Count': 8, 'LogicalGpuCount': 8, "
    "'GpuPartitionSize': 1.0, 'Workloads': ['ml-ai'], 'MemoryInfo': {'SizeInMiB': 81920}}], "
    "'TotalGpuMemoryInMiB': 655360}\""
)
P5 = f"p5.48xlarge,H100,8.0,192.0,2048.0,{P5_INFO}"
AWS = "\n".join(
    [
        AWS_HEAD,
        "c9.large,,,2.0,4.0,,0.1,0.05,us-east-1,use1-az1,arm64",
        f"{P5},50.25,20.125000,us-east-1,use1-az1,x86_64",
        f"{P5},50.25,50.250000,us-east-1,use1-az2,x86_64",
        f"{P5},50.25,18.500000,us-east-1,use1-az3,x86_64",
        f"{P5},50.25,9.000000,us-east-1,use1-atl2-az1,x86_64",
        f"{P5},60.5,60.500040,eu-west-2,euw2-az1,x86_64",
        f"{P5},,21.000000,us-west-2,usw2-az1,x86_64",
        f"{P5},,,ap-south-1,aps1-az1,x86_64",
        "g6f.2xlarge,L4,0.25,8.0,32.0,\"{'Gpus': [{'Name': 'L4', 'Count': 0, 'MemoryInfo': "
        "{'SizeInMiB': 5722}}], 'TotalGpuMemoryInMiB': 5722}\",0.5,0.1,us-east-1,use1-az1,x86_64",
    ]
)
GCP = """\
InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
a2-ultragpu-8g,96.0,1360.0,,,,us-east5,us-east5-a,8.8,2.5
a2-ultragpu-8g,96.0,1360.0,,,,us-central1,us-central1-a,8.8,4.4
n1-highcpu-16,16.0,14.4,,,,asia-east1,asia-east1-a,0.65,0.1
,,,A100-80GB,8,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]},us-east5,us-east5-a,35.4,10.7
,,,A100-80GB,8,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]},us-central1,us-central1-a,14.8,15.7
,,,B200,8,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 184320}}]},us-east4,us-east4-b,64.4,32.6
,,,P100,1,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 16384}}]},us-central1,us-central1-c,1.4,0.7
,,,tpu-v6e-8,1,tpu-v6e-8,europe-west4,europe-west4-a,23.8,8.3
,,,tpu-v5p-16,1,tpu-v5p-16,us-east5,us-east5-a,33.6,16.8
,,,tpu-v6e-1,1,tpu-v6e-1,us-central2,us-central2-b,700.0,700.0
,,,tpu-v6e-4,1,tpu-v6e-4,us-south1,us-south1-ai1b,10.8,700.0
"""
AZURE = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,Generation
Standard_NC24ads_A100_v4,A100-80GB,1,24.0,220,A100-80GB,3.7,0.45,eastus,V2
Standard_NC40ads_H100_v5,H100,1,40.0,320,H100,7.0,7.0,eastus,V2
Standard_ND96isr_H100_v5,H100,12,96.0,1900,H100,98.5,98.5,eastus,V2
Standard_NV6ads_A10_v5,A10,1,6.0,55,A10,0.5,0.1,eastus,"V1,V2"
Standard_NC24_Promo,K80,4,24.0,224,K80,0.7,,westus2,V1
Standard_NV16as_v4,,,16.0,56,,,,westus,"V1,V2"
"""
DO = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
gpu-h100x8-640gb,H100,8,160,1920.0,24.5,tor1,"{'gpus': [{'name': 'h100', 'manufacturer': 'nvidia', \
'count': 8.0, 'memoryinfo': {'sizeinmib': 81559}}], 'totalgpumemoryinmib': 81559}",
"""
CUDO = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
ice-lake-h100_1x2v4gb,H100-SXM,1.0,2,4,2.5,ca-1,"{'Gpus': [{'Name': 'H100-SXM', 'Manufacturer': \
'NVIDIA', 'Count': '1.0', 'MemoryInfo': {'SizeInMiB': 81920}}], 'TotalGpuMemoryInMiB': 81920}",
ice-lake-h100_8x64v128gb,H100-SXM,8.0,64,128,21.1,ca-1,"{'Gpus': [{'Name': 'H100-SXM', \
'Manufacturer': 'NVIDIA', 'Count': '8.0', 'MemoryInfo': {'SizeInMiB': 81920}}], \
'TotalGpuMemoryInMiB': 655360}",
"""
HYPERSTACK = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,Region,SpotPrice
x9-A100x8-NVLink,A100-80G-PCIe-NVLink,8,252,1920.0,"{'Gpus': [{'Name': 'A100-80G-PCIe-NVLink', \
'Manufacturer': null, 'Count': 8, 'MemoryInfo': {'SizeInMiB': 81920}}], \
'TotalGpuMemoryInMiB': 655360}",11.2,CANADA-9,
x9-H100x1,H100-80G-PCIe,1,28,180.0,"{'Gpus': [{'Name': 'H100-80G-PCIe', 'Manufacturer': null, \
'Count': 1, 'MemoryInfo': {'SizeInMiB': 81920}}], 'TotalGpuMemoryInMiB': 81920}",1.9,CANADA-9,
"""
LAMBDA = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
gpu_2x_h100_sxm5,H100,2.0,52.0,450.0,8.4,us-east-9,"{'Gpus': [{'Name': 'H100', 'Manufacturer': \
'NVIDIA', 'Count': 2.0, 'MemoryInfo': {'SizeInMiB': 81920}}], 'TotalGpuMemoryInMiB': 81920}",
gpu_1x_h100_pcie,H100,1.0,26.0,200.0,3.3,us-east-9,"{'Gpus': [{'Name': 'H100', 'Manufacturer': \
'NVIDIA', 'Count': 1.0, 'MemoryInfo': {'SizeInMiB': 81920}}], 'TotalGpuMemoryInMiB': 81920}",
gpu_1x_h100,H100,1.0,26.0,200.0,3.3,us-east-9,"{'Gpus': [{'Name': 'H100', 'Manufacturer': \
'NVIDIA', 'Count': 1.0, 'MemoryInfo': {'SizeInMiB': 81920}}], 'TotalGpuMemoryInMiB': 81920}",
"""
MITHRIL = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,GpuInfo
h100-80gb.sxm.8x,H100,8,168,1814,8.0,8.0,us-central2-a,"{'Gpus': [{'Name': 'H100', 'Count': 8, \
'MemoryInfo': {'SizeInMiB': 81920}}], 'TotalGpuMemoryInMiB': 655360}"
"""
PRIMEINTELLECT = """\
InstanceType,UpstreamCloudId,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
acme__8xA100_80GB,gpu_8x_a100_80gb_sxm4,240.0,1800,A100-80GB,8.0,"{""Gpus"":[{""Name"":""A100-80GB"",\
""Count"":8,""MemoryInfo"":{""SizeInMiB"":655360}}],""TotalGpuMemoryInMiB"":5242880}",US,us-9,14.3,
acme__1xA100_80GB,1A100,22.0,120,A100-80GB,1.0,"{""Gpus"":[{""Name"":""A100-80GB"",""Count"":1,\
""MemoryInfo"":{""SizeInMiB"":81920}}],""TotalGpuMemoryInMiB"":81920}",FI,FIN-9,1.1,
acme__8xL40_48GB,g3-l40s-large,128.0,1536,L40,8.0,"{""Gpus"":[{""Name"":""L40"",""Count"":8,\
""MemoryInfo"":{""SizeInMiB"":393216}}],""TotalGpuMemoryInMiB"":3145728}",DE,FRA9,7.0,
acme__8xB200__SPOT,gpu-b200-sxm,160.0,1792,B200,8.0,"{""Gpus"":[{""Name"":""B200"",""Count"":8,\
""MemoryInfo"":{""SizeInMiB"":1474560}}],""TotalGpuMemoryInMiB"":11796480}",US,us-9,,13.5
"""
RUNPOD = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price,AvailabilityZone,GpuInfo
1x_A100-80GB_NEW,A100-80GB,1.0,8.0,117.0,US,1.4,1.4,US-CA-1,"{'Gpus': [{'Name': 'A100 PCIe', 'Count': 1, \
'MemoryInfo': {'SizeInMiB': 80}}], 'TotalGpuMemoryInMiB': 80}"
1x_A100-80GB_NEW,A100-80GB,1.0,8.0,117.0,US,1.4,1.4,US-TX-1,"{'Gpus': [{'Name': 'A100 PCIe', 'Count': 1, \
'MemoryInfo': {'SizeInMiB': 80}}], 'TotalGpuMemoryInMiB': 80}"
"""
SHADEFORM = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
acme_A100-sxm4x8,A100,8.0,120.0,940,11.2,calgary-9,"{'Gpus': [{'Name': 'A100', 'Manufacturer': 'NVIDIA', \
'Count': 8.0, 'MemoryInfo': {'SizeInMiB': 40}, 'TotalGpuMemoryInMiB': 320}]}",
acme_L40Sx10,L40S,10.0,80.0,1470,15.0,usa-9,"{'Gpus': [{'Name': 'L40S', 'Manufacturer': 'NVIDIA', \
'Count': 10.0, 'MemoryInfo': {'SizeInMiB': 48}, 'TotalGpuMemoryInMiB': 480}]}",
"""
VAST = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region
2x-H100_NVL-9,H100,2,32,64.0,"{'Gpus': [{'Name': 'H100', 'Count': 2, 'MemoryInfo': {'SizeInMiB': \
191660}}], 'TotalGpuMemoryInMiB': 191660}",4.5,0.00,"Australia, AU, OC"
8x-H200-9,H200,8,32,64.0,"{'Gpus': [{'Name': 'H200', 'Count': 8, 'MemoryInfo': {'SizeInMiB': \
1150168}}], 'TotalGpuMemoryInMiB': 1150168}",17.9,0.00,", US, NA"
2x-RTX_5090-9,RTX5090,2,32,64.0,"{'Gpus': [{'Name': 'RTX5090', 'Count': 2, 'MemoryInfo': {'SizeInMiB': \
65214}}], 'TotalGpuMemoryInMiB': 65214}",0.9,0.00,"Hafnarfjarðarkaupstaður, IS, EU"
1x-RTX_4090-9,RTX4090,1,32,64.0,"{'Gpus': [{'Name': 'RTX4090', 'Count': 1, 'MemoryInfo': {'SizeInMiB': \
49140}}], 'TotalGpuMemoryInMiB': 49140}",0.4,0.00,"Hong Kong, HK, AS"
"""
VERDA = """\
InstanceType,UpstreamCloudId,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,Price,SpotPrice
9B300.30V,9B300.30V,30.0,275.0,B300,1.0,"{""Gpus"": [{""Name"": ""B300"", ""Count"": 1, ""MemoryInfo"": \
{""SizeInMiB"": 268288}}], ""TotalGpuMemoryInMiB"": 268288}",FIN-9,7.0,2.5
9B300.60V,9B300.60V,60.0,550.0,B300,2.0,"{""Gpus"": [{""Name"": ""B300"", ""Count"": 2, ""MemoryInfo"": \
{""SizeInMiB"": 268800}}], ""TotalGpuMemoryInMiB"": 537600}",FIN-9,,4.9
"""
SKYPILOT = {
    "aws": AWS,
    "gcp": GCP,
    "azure": AZURE,
    "do": DO,
    "cudo": CUDO,
    "hyperstack": HYPERSTACK,
    "lambda": LAMBDA,
    "mithril": MITHRIL,
    "primeintellect": PRIMEINTELLECT,
    "runpod": RUNPOD,
    "shadeform": SHADEFORM,
    "vast": VAST,
    "verda": VERDA,
}
GPUHUNT_HEAD = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,"
    "gpu_vendor,flags,cpu_arch,provider_data"
)
GPUHUNT_AWS = f"""\
{GPUHUNT_HEAD}
c9.large,us-east-2,0.1,4,8.0,0,,,False,,,,arm,{{}}
p5.48xlarge,us-east-2,11.2543,192,2048.0,8,H100,80.0,True,,nvidia,,x86,{{}}
p5.48xlarge,us-east-2,55.04,192,2048.0,8,H100,80.0,False,,nvidia,,x86,{{}}
p4de.24xlarge,us-east-2,27.5,96,1152.0,8,A100,80.0,False,,nvidia,,x86,{{}}
p4de.24xlarge,us-east-2,27.6,96,1152.0,8,A100,80.0,True,,nvidia,,x86,{{}}
p6-b300.48xlarge,us-west-2,142.4,192,4096.0,8,B300,270.0,False,,nvidia,,x86,{{}}
z9.8x,us-east-2,31.2,64,800.0,8,H100,80.0,False,,nvidia,,x86,{{}}
"""
GPUHUNT_GCP = f"""\
{GPUHUNT_HEAD}
v5p-8,us-east5,33.6,192,384.0,8,v5p,95.0,False,,google,,x86,{{}}
v5litepod-4,us-west4,2.04,96,192.0,4,v5litepod,16.0,True,,google,,x86,{{}}
"""
GPUHUNT_LEGACY = """\
instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size
p5.48xlarge,us-east-1,55.04,192,2048.0,8,H100,80.0,False,
v5litepod-4,us-central1,4.8,112,192.0,4,tpu-v5litepod,16.0,False,
broken,us-east-1,,4,16.0,0,,,False,
"""


@cache
def known() -> Known:
    """What the shipped catalog knows."""
    catalog = load_catalog()
    return Known.of(Names("accelerator", catalog.accelerators.values()), catalog.offers)


def read(
    folder: Path, kind: str, text: str, *, provider: str = "", seen: str = "2026-08-19"
) -> Imported:
    """Import a text as a file of some provider."""
    path = folder / "file.csv"
    path.write_text(text, encoding="utf-8")
    return read_prices(kind, PriceFile(path, seen, provider), known())
