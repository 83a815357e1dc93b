"""What an administrator makes: machines with their interfaces and public addresses, scale sets of both kinds."""

import itertools
import uuid

from azure.schema import assure

SUBSCRIPTION = "00000000-aaaa-4bbb-8ccc-dddddddddddd"
LOCATION = "westeurope"


class Machines:
    def __init__(self, store):
        self.store = store
        self.numbers = itertools.count(4)

    def group(self, name="demo"):
        return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}"

    def addresses(self, base, interface, ipv6, public):
        """An interface with its configurations, and its public address."""
        number = next(self.numbers)
        configurations = [{"name": "ipconfig1", "properties": {"primary": True, "privateIPAddress": self.ipv4(number),
                          "privateIPAddressVersion": "IPv4", "privateIPAllocationMethod": "Dynamic"}}]
        if ipv6:
            configurations.append({"name": "v6", "properties": {"primary": False, "privateIPAddress": f"fd00::{number:x}",
                                  "privateIPAddressVersion": "IPv6"}})
        if public:
            path = f"{base}/publicIPAddresses/{interface.rsplit('/', 1)[1]}-ip"
            if "/virtualmachinescalesets/" in base.lower():
                path = f"{interface}/ipConfigurations/ipconfig1/publicIPAddresses/pub"
            address = {"properties": {"ipAddress": f"20.{number >> 16}.{number >> 8 & 255}.{number & 255}",
                       "publicIPAllocationMethod": "Static", "provisioningState": "Succeeded"}}
            assure("publicipaddresses", self.store.put(path, address))
            configurations[0]["properties"]["publicIPAddress"] = {"id": path}
        self.store.put(interface, {"properties": {"ipConfigurations": configurations, "primary": True}})
        return self.ipv4(number)

    def ipv4(self, number):
        return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"

    def view(self, power, fault_domain):
        return {"platformFaultDomain": fault_domain, "statuses": [{"code": "ProvisioningState/succeeded", "level": "Info"},
                {"code": f"PowerState/{power}", "level": "Info"}]}

    def standalone(self, name, group="demo", zone="1", computer=None, ipv6=False, public=False, scale_set=None, fault_domain=0):
        base = f"{self.group(group)}/providers/Microsoft.Network"
        interface = f"{base}/networkInterfaces/{name}-nic"
        ip = self.addresses(base, interface, ipv6, public)
        properties = {
            "vmId": str(uuid.uuid4()), "hardwareProfile": {"vmSize": "Standard_D2s_v3"}, "provisioningState": "Succeeded",
            "osProfile": {"computerName": computer or name}, "storageProfile": {"dataDisks": []},
            "networkProfile": {"networkInterfaces": [{"id": interface, "properties": {"primary": True}}]},
            "instanceView": self.view("running", fault_domain),
        }
        if scale_set:
            properties["virtualMachineScaleSet"] = {"id": scale_set}
        # Compute writes groups in capitals.
        path = f"{self.group(group.upper())}/providers/Microsoft.Compute/virtualMachines/{name}"
        machine = {"location": LOCATION, "type": "Microsoft.Compute/virtualMachines", "properties": properties}
        if zone:
            machine["zones"] = [zone]
        return {"id": self.machine(path, machine), "ip": ip}

    def machine(self, path, machine):
        there = self.store.put(path, machine)
        self.store.renew(there)
        return there["id"]

    def scale_set(self, name, flexible=False, group="demo"):
        path = f"{self.group(group)}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"
        properties = {"orchestrationMode": "Flexible" if flexible else "Uniform", "provisioningState": "Succeeded"}
        return self.store.put(path, {"location": LOCATION, "sku": {"name": "Standard_D4s_v3", "capacity": 0}, "properties": properties})

    def uniform(self, scale_set, number, computer, zone="2", ipv6=False, public=False, group="demo", fault_domain=0):
        base = f"{self.group(group)}/providers/Microsoft.Compute/virtualMachineScaleSets/{scale_set}"
        path = f"{base}/virtualMachines/{number}"
        interface = f"{path}/networkInterfaces/nic"
        ip = self.addresses(base, interface, ipv6, public)
        machine = {
            "name": f"{scale_set}_{number}", "instanceId": str(number), "location": LOCATION,
            "sku": {"name": "Standard_D4s_v3", "tier": "Standard"},
            "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
            "properties": {
                "vmId": str(uuid.uuid4()), "provisioningState": "Succeeded", "osProfile": {"computerName": computer},
                "storageProfile": {"dataDisks": []},
                "networkProfile": {"networkInterfaces": [{"id": interface, "properties": {"primary": True}}]},
                "instanceView": self.view("running", fault_domain),
            },
        }
        if zone:
            machine["zones"] = [zone]
        return {"id": self.machine(path, machine), "ip": ip}
