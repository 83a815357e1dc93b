"""Prints the signature that botocore gives to the request of `api_tests.rs`."""
import datetime
import botocore.auth
import botocore.awsrequest
import botocore.credentials

NOW = datetime.datetime(2026, 11, 21, 9, 0, 0, tzinfo=datetime.timezone.utc)
botocore.auth.get_current_datetime = lambda *_args, **_kwargs: NOW.replace(tzinfo=None)
credentials = botocore.credentials.Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
request = botocore.awsrequest.AWSRequest(
    method="POST",
    url="http://127.0.0.1:5000/",
    headers={"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
    data="Action=DescribeAvailabilityZones&Version=2016-11-15",
)
botocore.auth.SigV4Auth(credentials, "ec2", "us-east-1").add_auth(request)
print(request.headers["X-Amz-Date"], request.headers["Authorization"])
