"""Records moto's answers: run against `moto_server -p 5599` with INITIAL_NO_AUTH_ACTION_COUNT=1000000."""
import boto3, urllib.request, urllib.parse, urllib.error, os
URL="http://127.0.0.1:5599"
OUT=os.path.dirname(os.path.abspath(__file__))+"/"
def client(s): return boto3.client(s, endpoint_url=URL, region_name="us-east-1", aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="x")
urllib.request.urlopen(urllib.request.Request(URL+"/moto-api/reset", method="POST"))
ec2=client("ec2")
vpc=ec2.create_vpc(CidrBlock="10.0.0.0/16", AmazonProvidedIpv6CidrBlock=True)["Vpc"]["VpcId"]
ec2.create_tags(Resources=[vpc],Tags=[{"Key":"kubernetes.io/cluster/test","Value":"owned"}])
ipv6=ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"]
sub=ec2.create_subnet(VpcId=vpc,CidrBlock="10.0.1.0/24",AvailabilityZone="us-east-1a",Ipv6CidrBlock=ipv6.replace("/56","/64"))["Subnet"]["SubnetId"]
ec2.modify_subnet_attribute(SubnetId=sub,MapPublicIpOnLaunch={"Value":True})
subb=ec2.create_subnet(VpcId=vpc,CidrBlock="10.0.2.0/24",AvailabilityZone="us-east-1b")["Subnet"]["SubnetId"]
tags=[{"ResourceType":"instance","Tags":[{"Key":"kubernetes.io/cluster/test","Value":"owned"},{"Key":"Name","Value":"node <1>"}]}]
def run(subnet, ip, kind="t3.small", tags=tags, **more):
    i=ec2.run_instances(ImageId="ami-12c6146b",MinCount=1,MaxCount=1,InstanceType=kind,SubnetId=subnet,PrivateIpAddress=ip,TagSpecifications=tags or [],**more)["Instances"][0]
    return i["InstanceId"]
a=run(sub,"10.0.1.10"); b=run(subb,"10.0.2.20","p5.48xlarge"); c=run(subb,"10.0.2.30"); d=run(subb,"10.0.2.40"); e=run(subb,"10.0.2.50",tags=None)
ec2.stop_instances(InstanceIds=[c]); ec2.terminate_instances(InstanceIds=[d])
eni=ec2.create_network_interface(SubnetId=subb,PrivateIpAddress="10.0.2.120")["NetworkInterface"]["NetworkInterfaceId"]
ec2.attach_network_interface(NetworkInterfaceId=eni,InstanceId=b,DeviceIndex=1)
eni6=ec2.create_network_interface(SubnetId=sub,PrivateIpAddress="10.0.1.77",Ipv6AddressCount=1)["NetworkInterface"]["NetworkInterfaceId"]
rt=ec2.create_route_table(VpcId=vpc,TagSpecifications=[{"ResourceType":"route-table","Tags":[{"Key":"kubernetes.io/cluster/test","Value":"owned"}]}])["RouteTable"]["RouteTableId"]
igw=ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]; ec2.attach_internet_gateway(InternetGatewayId=igw,VpcId=vpc)
ec2.create_route(RouteTableId=rt,DestinationCidrBlock="0.0.0.0/0",GatewayId=igw)
ec2.create_route(RouteTableId=rt,DestinationCidrBlock="10.244.0.0/24",InstanceId=a)
ec2.create_route(RouteTableId=rt,DestinationCidrBlock="10.244.9.0/24",InstanceId=e)
def call(name, service, version, action, **fields):
    body=urllib.parse.urlencode({"Action":action,"Version":version,**fields})
    h={"Authorization":f"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0","Content-Type":"application/x-www-form-urlencoded"}
    try:
        r=urllib.request.urlopen(urllib.request.Request(URL+"/",data=body.encode(),headers=h)); s=r.status; t=r.read()
    except urllib.error.HTTPError as err: s=err.code; t=err.read()
    shown="&".join(k+"="+v for k,v in fields.items()); open(OUT+name,"wb").write(f"# moto 5.2.5, {service} {action} {shown}, status {s}; recorded/record.py\n".encode()+t); print(name,s,len(t))
V="2016-11-15"
call("describe_instances.xml","ec2",V,"DescribeInstances",**{"InstanceId.1":a,"InstanceId.2":b,"InstanceId.3":c,"InstanceId.4":d,"InstanceId.5":e})
call("describe_instances_not_found.xml","ec2",V,"DescribeInstances",**{"InstanceId.1":a,"InstanceId.2":"i-0aaaaaaaaaaaaaaaa","InstanceId.3":"i-0bbbbbbbbbbbbbbbb"})
call("describe_instances_malformed.xml","ec2",V,"DescribeInstances",**{"InstanceId.1":"i-bad"})
call("describe_instances_none.xml","ec2",V,"DescribeInstances",**{"Filter.1.Name":"private-dns-name","Filter.1.Value.1":"nobody"})
call("describe_availability_zones.xml","ec2",V,"DescribeAvailabilityZones")
call("describe_instance_topology.html","ec2",V,"DescribeInstanceTopology",**{"InstanceId.1":a})
call("describe_route_tables.xml","ec2",V,"DescribeRouteTables",**{"Filter.1.Name":"tag-key","Filter.1.Value.1":"kubernetes.io/cluster/test","Filter.1.Value.2":"KubernetesCluster"})
call("describe_route_tables_none.xml","ec2",V,"DescribeRouteTables",**{"Filter.1.Name":"tag-key","Filter.1.Value.1":"kubernetes.io/cluster/other"})
call("describe_network_interfaces.xml","ec2",V,"DescribeNetworkInterfaces",**{"Filter.1.Name":"private-ip-address","Filter.1.Value.1":"10.0.1.77"})
call("describe_vpcs.xml","ec2",V,"DescribeVpcs",**{"Filter.1.Name":"tag-key","Filter.1.Value.1":"kubernetes.io/cluster/test"})
call("modify_instance_attribute.xml","ec2",V,"ModifyInstanceAttribute",**{"InstanceId":a,"SourceDestCheck.Value":"false"})
call("create_route.xml","ec2",V,"CreateRoute",RouteTableId=rt,DestinationCidrBlock="10.244.3.0/24",InstanceId=a)
call("create_route_exists.xml","ec2",V,"CreateRoute",RouteTableId=rt,DestinationCidrBlock="10.244.3.0/24",InstanceId=b)
call("delete_route.xml","ec2",V,"DeleteRoute",RouteTableId=rt,DestinationCidrBlock="10.244.3.0/24")
call("delete_route_not_found.xml","ec2",V,"DeleteRoute",RouteTableId=rt,DestinationCidrBlock="10.244.3.0/24")
call("assume_role.xml","sts","2011-06-15","AssumeRole",RoleArn="arn:aws:iam::123456789012:role/cloudwit",RoleSessionName="cloudwit")
call("assume_role_with_web_identity.xml","sts","2011-06-15","AssumeRoleWithWebIdentity",RoleArn="arn:aws:iam::123456789012:role/cloudwit",RoleSessionName="cloudwit",WebIdentityToken="token")
call("elb_not_found.xml","elasticloadbalancing","2012-06-01","DescribeLoadBalancers",**{"LoadBalancerNames.member.1":"nobody"})
r=urllib.request.urlopen(URL+"/latest/meta-data/iam/security-credentials/"); t=r.read(); print(t); open(OUT+"security_credentials.txt","wb").write(b"# moto 5.2.5, GET /latest/meta-data/iam/security-credentials/; recorded/record.py\n"+t)
r=urllib.request.urlopen(URL+"/latest/meta-data/iam/security-credentials/default-role"); t=r.read(); print(t); open(OUT+"security_credentials_role.json","wb").write(b"# moto 5.2.5, GET .../default-role; recorded/record.py\n"+t)
try: print("PUT token", urllib.request.urlopen(urllib.request.Request(URL+"/latest/api/token",method="PUT",headers={"X-aws-ec2-metadata-token-ttl-seconds":"21600"})).read())
except urllib.error.HTTPError as err: print("PUT token",err.code)
