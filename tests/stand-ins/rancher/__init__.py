"""A stand-in for Rancher 1.x: the API of Cattle, version 2, driven by its recorded schema documents."""
