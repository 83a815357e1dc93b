"""The MAC address of a port that comes by another way than Neutron's API, so that Nova and Neutron say the same."""


def mac_of(port):
    digits = port.replace("-", "")
    return "fa:16:3e:" + ":".join(digits[at : at + 2] for at in (0, 2, 4))
