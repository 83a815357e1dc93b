"""Records moto's answers about volumes: run beside `tests/python/moto_server.py --unchecked`, with its port as the argument."""

import os
import sys
import urllib.error
import urllib.parse
import urllib.request

import boto3

URL = "http://127.0.0.1:" + sys.argv[1]
OUT = os.path.dirname(os.path.abspath(__file__)) + "/"
VERSION = "2016-11-15"
TAGS = [
    {"Key": "CSIVolumeName", "Value": "pvc-1"},
    {"Key": "ebs.csi.aws.com/cluster", "Value": "true"},
    {"Key": "kubernetes.io/cluster/test", "Value": "owned"},
]


def call(name, action, **fields):
    body = urllib.parse.urlencode({"Action": action, "Version": VERSION, **fields}).encode()
    scope = "AKIDEXAMPLE/20260101/us-east-1/ec2/aws4_request"
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    try:
        answer = urllib.request.urlopen(urllib.request.Request(URL + "/", data=body, headers=headers))
        status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    shown = "&".join(key + "=" + str(value) for key, value in fields.items())
    head = f"# moto 5.2.5, ec2 {action} {shown}, status {status}; recorded/volumes/record.py\n"
    with open(OUT + name, "wb") as file:
        file.write(head.encode() + text)
    print(name, status, len(text))


ec2 = boto3.client("ec2", endpoint_url=URL, region_name="us-east-1", aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="x")
vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
run = ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, InstanceType="t3.small", SubnetId=subnet)
machine = run["Instances"][0]["InstanceId"]


def create(**more):
    tags = [{"ResourceType": "volume", "Tags": TAGS}]
    return ec2.create_volume(AvailabilityZone="us-east-1a", TagSpecifications=tags, **more)["VolumeId"]


usual = create(Size=4, VolumeType="gp3")
snapshot = ec2.create_snapshot(VolumeId=usual)["SnapshotId"]
shared = create(Size=8, VolumeType="io2", Iops=400, MultiAttachEnabled=True, SnapshotId=snapshot)
ec2.attach_volume(VolumeId=usual, InstanceId=machine, Device="/dev/xvdaa")
call("describe_volumes.xml", "DescribeVolumes", **{"VolumeId.1": usual, "VolumeId.2": shared})
call("describe_volumes_not_found.xml", "DescribeVolumes", **{"VolumeId.1": usual, "VolumeId.2": "vol-0aaaaaaaaaaaaaaaa"})
call("describe_snapshots.xml", "DescribeSnapshots", **{"SnapshotId.1": snapshot})
call("modify_volume.xml", "ModifyVolume", VolumeId=usual, Size=6)
call("describe_volumes_modifications.xml", "DescribeVolumesModifications", **{"VolumeId.1": usual})
call("delete_volume_in_use.xml", "DeleteVolume", VolumeId=usual)
kinds = ["c5d.24xlarge", "m5.metal", "m7i.48xlarge", "t2.micro", "t3.small"]
call("describe_instance_types.xml", "DescribeInstanceTypes", **{"Filter.1.Name": "instance-type"}, **{f"Filter.1.Value.{at}": kind for at, kind in enumerate(kinds, 1)})
