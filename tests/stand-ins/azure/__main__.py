"""There is no `__init__.py` in this folder: Microsoft's packages are called `azure` too, and Python then sees both as one package."""

from azure.cloud import AzureCloud
from frame import serve

serve(AzureCloud())
