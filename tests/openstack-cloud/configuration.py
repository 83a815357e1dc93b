"""Writes the configuration files of the services into the cloud's folder.

Every service keeps its data in SQLite files of that folder and speaks to no message broker. What an operator would leave at its default is
left at its default, so that limits, quotas and rules are the ones of a real cloud.
"""

import sys
from pathlib import Path

REGION = "RegionOne"
ADMIN_PASSWORD = "admin-of-a-test-cloud"
SERVICE_PASSWORD = "services-of-a-test-cloud"

# The order in which they need each other.
SERVICES = ("keystone", "neutron", "nova", "octavia", "cinder")

# Availability zones with disks, and what Cinder calls the backend in each.
ZONES = {"nova": "disks", "elsewhere": "disks-elsewhere"}

# How many volumes a server takes, its own disk among them.
MOST_DISKS = 16


def write(folder: Path, urls: dict) -> None:
    """One file for each service, and Neutron's pipeline. `urls` gives the root URL of each service."""
    texts = {
        "keystone.conf": _keystone(folder),
        "neutron.conf": _neutron(folder, urls),
        "neutron-paste.ini": _neutron_paste(),
        "nova.conf": _nova(folder, urls),
        "octavia.conf": _octavia(folder, urls),
        "cinder.conf": _cinder(folder, urls),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)


def database(folder: Path, name: str) -> str:
    """The SQLAlchemy URL of one database file. A writer waits a minute for another."""
    return f"sqlite:///{folder}/{name}.db?timeout=60"


def _keystone(folder: Path) -> str:
    # Few hash rounds and no cache: a project for each test must be cheap, and a revoked token revoked at once.
    return f"""
[DEFAULT]
log_file = {folder}/keystone.log
[database]
connection = {database(folder, "keystone")}
sqlite_synchronous = false
[identity]
password_hash_rounds = 4
[fernet_tokens]
key_repository = {folder}/fernet-keys
[credential]
key_repository = {folder}/credential-keys
[cache]
enabled = false
"""


def _neutron(folder: Path, urls: dict) -> str:
    return f"""
[DEFAULT]
log_file = {folder}/neutron.log
transport_url = fake://
auth_strategy = keystone
core_plugin = ml2
service_plugins = router
api_paste_config = {folder}/neutron-paste.ini
state_path = {folder}/neutron-state
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
dns_domain = cloud.test.
[oslo_concurrency]
lock_path = {folder}/neutron-locks
[database]
connection = {database(folder, "neutron")}
sqlite_synchronous = false
[ml2]
type_drivers = local,flat
tenant_network_types = local
mechanism_drivers = logger
extension_drivers = port_security
[ml2_type_flat]
flat_networks = *
[keystone_authtoken]
{_token_check(urls)}
"""


def _nova(folder: Path, urls: dict) -> str:
    # Nova holds its answers against its own schema, so that servers are not of a shape that no cloud has. It asks Neutron for security groups
    # by the door without tokens, see _neutron_paste. A service that was up once counts as up, however busy the machine is.
    return f"""
[DEFAULT]
log_file = {folder}/nova.log
transport_url = fake://
host = api
state_path = {folder}/nova-state
service_down_time = 864000
[api]
auth_strategy = keystone
response_validation = error
[wsgi]
api_paste_config = {sys.prefix}/etc/nova/api-paste.ini
[oslo_concurrency]
lock_path = {folder}/nova-locks
[api_database]
connection = {database(folder, "nova_api")}
sqlite_synchronous = false
[database]
connection = {database(folder, "nova")}
sqlite_synchronous = false
[compute]
max_disk_devices_to_attach = {MOST_DISKS}
[glance]
endpoint_override = http://glance.nowhere
[cinder]
{_account(urls)}
os_region_name = {REGION}
[service_user]
send_service_user_token = true
{_account(urls)}
[neutron]
auth_type = none
endpoint_override = {urls["neutron"]}/inside
[keystone_authtoken]
{_token_check(urls)}
"""


def _octavia(folder: Path, urls: dict) -> str:
    # The driver of the networks is the real one: VIP ports are made in Neutron, and unknown networks and subnets are refused.
    account = _account(urls)
    return f"""
[DEFAULT]
log_file = {folder}/octavia.log
transport_url = fake://
[oslo_messaging]
topic = octavia
[database]
connection = {database(folder, "octavia")}
pool_timeout =
[api_settings]
bind_host = 127.0.0.1
auth_strategy = keystone
api_base_uri = {urls["octavia"]}
default_provider_driver = amphora
enabled_provider_drivers = amphora:Amphora,octavia:Amphora,noop_driver:Nothing
[controller_worker]
network_driver = allowed_address_pairs_driver
[certificates]
cert_manager = noop_cert_manager
[service_auth]
{account}
[neutron]
{account}
endpoint_override = {urls["neutron"]}
[keystone_authtoken]
{_token_check(urls)}
"""


def _cinder(folder: Path, urls: dict) -> str:
    backends = "".join(
        f"""[{name}]
volume_driver = cinder_disks.Disks
volume_backend_name = {name}
backend_availability_zone = {zone}
target_helper = fake
"""
        for zone, name in ZONES.items()
    )
    return f"""
[DEFAULT]
log_file = {folder}/cinder.log
transport_url = fake://
auth_strategy = keystone
host = cinder
state_path = {folder}/cinder-state
api_paste_config = {sys.prefix}/etc/cinder/api-paste.ini
resource_query_filters_file = {sys.prefix}/etc/cinder/resource_filters.json
enabled_backends = {",".join(ZONES.values())}
storage_availability_zone = nova
scheduler_driver_init_wait_time = 1
periodic_interval = 86400
periodic_fuzzy_delay = 0
report_interval = 86400
service_down_time = 864000
[oslo_concurrency]
lock_path = {folder}/cinder-locks
[database]
connection = {database(folder, "cinder")}
sqlite_synchronous = false
[keystone_authtoken]
{_token_check(urls)}
{backends}"""


def _account(urls: dict) -> str:
    return f"""auth_type = password
auth_url = {urls["keystone"]}/v3
username = services
password = {SERVICE_PASSWORD}
project_name = service
user_domain_name = Default
project_domain_name = Default
region_name = {REGION}"""


def _token_check(urls: dict) -> str:
    # No cache of five minutes: see tokens.py.
    return f"""{_account(urls)}
www_authenticate_uri = {urls["keystone"]}
token_cache_time = -1
service_token_roles_required = true"""


def _neutron_paste() -> str:
    """The package's own pipeline, and a door without tokens for Nova, whose requests with a token are answered with 401 in this setting."""
    own = (Path(sys.prefix) / "etc/neutron/api-paste.ini").read_text()
    return own.replace("/v2.0: neutronapi_v2_0", "/v2.0: neutronapi_v2_0\n/inside/v2.0: inside") + _INSIDE


_INSIDE = """
[pipeline:inside]
pipeline = request_id fake_project_id catch_errors extensions neutronapiapp_v2_0
"""
