"""Volumes of moto as those of EC2 are, where moto is more lenient (`moto_server.py`).

moto names every id that was asked for when one does not exist, forgets ClientTokens, has no pages, moves a volume that is attached, gives a device's name
twice, knows no limit of an instance, keeps volumes at instances that have ended, and filters by several keys of tags as if all of them had to be there. States that take time are made by the gate in front of it.
"""

import base64
from fnmatch import fnmatch

from moto.ec2 import utils
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.elastic_block_store import EBSBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import InstanceBackend
from moto.ec2.responses.elastic_block_store import ElasticBlockStore

# EC2's bounds of a page.
LEAST, MOST = 5, 1000
# What a ClientToken covers.
CREATION = ("Size", "AvailabilityZone", "SnapshotId", "VolumeType", "Encrypted", "KmsKeyId", "Iops", "Throughput", "MultiAttachEnabled")


def refused(code, message):
    return EC2ClientError(code, message)


def name_what_is_missing():
    volumes, snapshots = EBSBackend.describe_volumes, EBSBackend.describe_snapshots

    def missing(kind, code, ids, known):
        unknown = [one for one in ids or [] if one not in known]
        if unknown:
            plural = "s" if len(unknown) > 1 else ""
            verb = "do" if plural else "does"
            raise refused(code, f"The {kind}{plural} '{', '.join(unknown)}' {verb} not exist.")

    def describe_volumes(self, volume_ids=None, filters=None):
        missing("volume", "InvalidVolume.NotFound", volume_ids, self.volumes)
        return volumes(self, volume_ids, filters)

    def describe_snapshots(self, snapshot_ids=None, filters=None):
        missing("snapshot", "InvalidSnapshot.NotFound", snapshot_ids, self.snapshots)
        return snapshots(self, snapshot_ids, filters)

    EBSBackend.describe_volumes = describe_volumes
    EBSBackend.describe_snapshots = describe_snapshots


def remember_client_tokens():
    create = EBSBackend.create_volume
    respond = ElasticBlockStore.create_volume

    def create_volume(self, *arguments, **named):
        token, wanted = getattr(self, "cloudwit_creation", (None, None))
        known = self.__dict__.setdefault("cloudwit_tokens", {})
        if token in known:
            volume, as_it_was = known[token]
            if as_it_was != wanted or volume.id not in self.volumes:
                raise refused(
                    "IdempotentParameterMismatch",
                    "Parameters on this idempotent request are inconsistent with parameters used in previous request(s).",
                )
            return volume
        volume = create(self, *arguments, **named)
        if token:
            known[token] = (volume, wanted)
        return volume

    def answer(self):
        wanted = tuple(str(self._get_param(name)) for name in CREATION)
        self.ec2_backend.cloudwit_creation = (self._get_param("ClientToken"), wanted)
        try:
            return respond(self)
        finally:
            self.ec2_backend.cloudwit_creation = (None, None)

    EBSBackend.create_volume = create_volume
    ElasticBlockStore.create_volume = answer


def turn_pages():
    def paged(respond, name):
        def answer(self):
            result = respond(self)
            size, token = self._get_param("MaxResults"), self._get_param("NextToken")
            if size is None:
                return result
            if not LEAST <= int(size) <= MOST:
                raise refused("InvalidParameterValue", f"Value ( {size} ) for parameter maxResults is invalid.")
            try:
                begin = int(base64.b64decode(token, validate=True)) if token else 0
            except ValueError:
                raise refused("InvalidNextToken", "The token is not valid.") from None
            items = list(result._result[name])
            end = begin + int(size)
            result._result[name] = items[begin:end]
            if end < len(items):
                result._result["NextToken"] = base64.b64encode(str(end).encode()).decode()
            return result

        return answer

    ElasticBlockStore.describe_volumes = paged(ElasticBlockStore.describe_volumes, "Volumes")
    ElasticBlockStore.describe_snapshots = paged(ElasticBlockStore.describe_snapshots, "Snapshots")


def attach_once():
    attach = EBSBackend.attach_volume

    def attach_volume(self, volume_id, instance_id, device_path, *arguments, **named):
        volume, instance = self.get_volume(volume_id), self.get_instance(instance_id)
        zone = instance._placement.zone
        if volume.attachment:
            raise refused("VolumeInUse", f"{volume_id} is already attached to an instance")
        if device_path in instance.block_device_mapping:
            text = f"Invalid value '{device_path}' for unixDevice. Attachment point {device_path} is already in use"
            raise refused("InvalidParameterValue", text)
        if volume.zone and volume.zone.name != zone:
            text = f"The volume '{volume_id}' is not in the same availability zone as instance '{instance_id}'"
            raise refused("InvalidVolume.ZoneMismatch", text)
        most = INSTANCE_TYPES.get(instance.instance_type, {}).get("EbsInfo", {}).get("MaximumEbsAttachments", 27)
        # The first network interface is counted in that number.
        if len(instance.block_device_mapping) + len(instance.nics) > most:
            raise refused("AttachmentLimitExceeded", f"Attachment limit of instance {instance_id} exceeded: {most}")
        return attach(self, volume_id, instance_id, device_path, *arguments, **named)

    EBSBackend.attach_volume = attach_volume


def free_at_the_end():
    end = InstanceBackend.terminate_instances

    def terminate_instances(self, instance_ids):
        ended = end(self, instance_ids)
        for volume in self.volumes.values():
            if volume.attachment and volume.attachment.instance.id in instance_ids:
                volume.attachment = None
        return ended

    InstanceBackend.terminate_instances = terminate_instances


def filter_by_any_key():
    matches = utils.is_filter_matching

    def is_filter_matching(obj, name, wanted):
        if name == "tag-key" and isinstance(wanted, list):
            return any(fnmatch(tag["key"], one) for tag in obj.get_tags() for one in wanted)
        return matches(obj, name, wanted)

    utils.is_filter_matching = is_filter_matching


def be_like_ec2():
    filter_by_any_key()
    name_what_is_missing()
    remember_client_tokens()
    turn_pages()
    attach_once()
    free_at_the_end()
