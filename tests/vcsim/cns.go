package main

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/vmware/govmomi/cns"
	"github.com/vmware/govmomi/cns/methods"
	cnssimulator "github.com/vmware/govmomi/cns/simulator"
	cnstypes "github.com/vmware/govmomi/cns/types"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// How many volumes fit a machine: four controllers with 15 disks each, without the one it starts from.
var disks = 59

// The first key of a device that is a volume.
const firstKey = 3000

// volumeManager is govmomi's, with attachments that are devices of machines, refusals, and pages.
type volumeManager struct {
	*cnssimulator.CnsVolumeManager
}

func init() {
	// After govmomi's own, whose package is initialised before this one: the same object, replaced.
	simulator.RegisterEndpoint(func(s *simulator.Service, r *simulator.Registry) {
		registry := cnssimulator.New()
		own := registry.Get(cns.CnsVolumeManagerInstance).(*cnssimulator.CnsVolumeManager)
		registry.Put(&volumeManager{own})
		s.RegisterSDK(registry)
		associate(r)
	})
}

// disk is the volume's virtual disk, and where it lies.
func disk(ctx *simulator.Context, id string) (types.ManagedObjectReference, *simulator.VStorageObject) {
	for datastore, objects := range ctx.Map.VStorageObjectManager().Catalog() {
		if object := objects[types.ID{Id: id}]; object != nil {
			return datastore, object
		}
	}
	return types.ManagedObjectReference{}, nil
}

func failed(id cnstypes.CnsVolumeId, fault types.BaseMethodFault, message string) cnstypes.CnsVolumeOperationResult {
	return cnstypes.CnsVolumeOperationResult{
		VolumeId: id,
		Fault:    &types.LocalizedMethodFault{Fault: fault, LocalizedMessage: message},
	}
}

// inUse is the fault about a volume of a machine.
func inUse(id cnstypes.CnsVolumeId) cnstypes.CnsVolumeOperationResult {
	return failed(id, &types.ResourceInUse{Type: "volume", Name: id.Id}, "The resource 'volume' is in use.")
}

func missing(id cnstypes.CnsVolumeId) cnstypes.CnsVolumeOperationResult {
	return failed(id, &cnstypes.CnsVolumeNotFoundFault{VolumeId: id}, "CNS: The volume was not found")
}

func batch(results ...cnstypes.BaseCnsVolumeOperationResult) *cnstypes.CnsVolumeOperationBatchResult {
	return &cnstypes.CnsVolumeOperationBatchResult{VolumeResults: results}
}

// outcome waits for a task of govmomi's and gives what came of it.
func outcome(ctx *simulator.Context, reference types.ManagedObjectReference) (types.AnyType, types.BaseMethodFault) {
	task := ctx.Map.Get(reference).(*simulator.Task)
	task.Wait()
	if task.Info.Error != nil {
		return nil, task.Info.Error.Fault
	}
	return task.Info.Result, nil
}

func (m *volumeManager) CnsCreateVolume(ctx *simulator.Context, req *cnstypes.CnsCreateVolume) soap.HasFault {
	vim := ctx.For(vim25.Path)
	for i := range req.CreateSpecs {
		spec := &req.CreateSpecs[i]
		size := spec.BackingObjectDetails.GetCnsBackingObjectDetails().CapacityInMb << 20
		fits := func(datastore types.ManagedObjectReference) bool {
			found, ok := vim.Map.Get(datastore).(*simulator.Datastore)
			return ok && found.Summary.FreeSpace >= size
		}
		if len(spec.Datastores) == 0 || slices.ContainsFunc(spec.Datastores, fits) {
			continue
		}
		task := simulator.CreateTask(m, "CnsCreateVolume", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
			result := failed(cnstypes.CnsVolumeId{}, &types.NoDiskSpace{}, "There is not enough space on the datastore.")
			return batch(&cnstypes.CnsVolumeCreateResult{CnsVolumeOperationResult: result, Name: spec.Name}), nil
		})
		return &methods.CnsCreateVolumeBody{Res: &cnstypes.CnsCreateVolumeResponse{Returnval: task.Run(vim)}}
	}
	return m.CnsVolumeManager.CnsCreateVolume(ctx, req)
}

func (m *volumeManager) CnsDeleteVolume(ctx *simulator.Context, req *cnstypes.CnsDeleteVolume) soap.HasFault {
	vim := ctx.For(vim25.Path)
	for _, id := range req.VolumeIds {
		if _, object := disk(vim, id.Id); object == nil || len(object.Config.ConsumerId) == 0 {
			continue
		}
		task := simulator.CreateTask(m, "CnsDeleteVolume", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
			result := inUse(id)
			return batch(&result), nil
		})
		return &methods.CnsDeleteVolumeBody{Res: &cnstypes.CnsDeleteVolumeResponse{Returnval: task.Run(vim)}}
	}
	return m.CnsVolumeManager.CnsDeleteVolume(ctx, req)
}

// CnsAttachVolume makes each volume a device of its machine.
func (m *volumeManager) CnsAttachVolume(ctx *simulator.Context, req *cnstypes.CnsAttachVolume) soap.HasFault {
	vim := ctx.For(vim25.Path)
	task := simulator.CreateTask(m, "CnsAttachVolume", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		results := batch()
		for _, spec := range req.AttachSpecs {
			result := attach(vim, spec)
			results.VolumeResults = append(results.VolumeResults, &result)
		}
		return results, nil
	})
	return &methods.CnsAttachVolumeBody{Res: &cnstypes.CnsAttachVolumeResponse{Returnval: task.Run(vim)}}
}

func attach(ctx *simulator.Context, spec cnstypes.CnsVolumeAttachDetachSpec) (result cnstypes.CnsVolumeAttachResult) {
	id := spec.VolumeId
	_, object := disk(ctx, id.Id)
	machine, ok := ctx.Map.Get(spec.Vm).(*simulator.VirtualMachine)
	switch {
	case object == nil:
		result.CnsVolumeOperationResult = missing(id)
	case !ok:
		fault := &types.ManagedObjectNotFound{Obj: spec.Vm}
		result.CnsVolumeOperationResult = failed(id, fault, "The object has already been deleted or has not been completely created")
	case len(object.Config.ConsumerId) > 0:
		result.CnsVolumeOperationResult = inUse(id)
	default:
		ctx.WithLock(machine, func() { result = plugIn(ctx, machine, object) })
	}
	return result
}

// plugIn adds the device.
func plugIn(ctx *simulator.Context, machine *simulator.VirtualMachine, object *simulator.VStorageObject) cnstypes.CnsVolumeAttachResult {
	id := cnstypes.CnsVolumeId{Id: object.Config.Id.Id}
	taken := map[int32]bool{}
	for _, device := range machine.Config.Hardware.Device {
		if device, ok := device.(*types.VirtualDisk); ok && device.VDiskId != nil {
			taken[device.Key] = true
		}
	}
	if len(taken) >= disks {
		// What vCenter says (kubernetes-sigs/vsphere-csi-driver, pull request 1331).
		reason := "CNS: Failed to attach disk because missing SCSI controller"
		return cnstypes.CnsVolumeAttachResult{CnsVolumeOperationResult: failed(id, &cnstypes.CnsFault{Reason: reason}, reason)}
	}
	key := int32(firstKey)
	for taken[key] {
		key++
	}
	digest := md5.Sum([]byte(id.Id))
	serial, _ := uuid.Parse("6000c29" + hex.EncodeToString(digest[:])[7:])
	backing := object.Config.Backing.(*types.BaseConfigInfoDiskFileBackingInfo)
	device := &types.VirtualDisk{
		VirtualDevice: types.VirtualDevice{
			Key: key,
			Backing: &types.VirtualDiskFlatVer2BackingInfo{
				VirtualDeviceFileBackingInfo: types.VirtualDeviceFileBackingInfo{
					FileName:  backing.FilePath,
					Datastore: &backing.Datastore,
				},
				DiskMode: string(types.VirtualDiskModeIndependent_persistent),
				Uuid:     strings.ToUpper(serial.String()),
			},
		},
		CapacityInKB: object.Config.CapacityInMB << 10,
		VDiskId:      &types.ID{Id: id.Id},
	}
	setDevices(ctx, machine, append(slices.Clone(machine.Config.Hardware.Device), device))
	object.Config.ConsumerId = []types.ID{{Id: machine.Config.Uuid}}
	return cnstypes.CnsVolumeAttachResult{
		CnsVolumeOperationResult: cnstypes.CnsVolumeOperationResult{VolumeId: id},
		DiskUUID:                 strings.ReplaceAll(serial.String(), "-", ""),
	}
}

func setDevices(ctx *simulator.Context, machine *simulator.VirtualMachine, devices []types.BaseVirtualDevice) {
	ctx.Update(machine, []types.PropertyChange{{Name: "config.hardware.device", Val: devices}})
}

// CnsDetachVolume takes the devices away.
func (m *volumeManager) CnsDetachVolume(ctx *simulator.Context, req *cnstypes.CnsDetachVolume) soap.HasFault {
	vim := ctx.For(vim25.Path)
	task := simulator.CreateTask(m, "CnsDetachVolume", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		results := batch()
		for _, spec := range req.DetachSpecs {
			result := detach(vim, spec)
			results.VolumeResults = append(results.VolumeResults, &result)
		}
		return results, nil
	})
	return &methods.CnsDetachVolumeBody{Res: &cnstypes.CnsDetachVolumeResponse{Returnval: task.Run(vim)}}
}

func detach(ctx *simulator.Context, spec cnstypes.CnsVolumeAttachDetachSpec) cnstypes.CnsVolumeOperationResult {
	id := spec.VolumeId
	_, object := disk(ctx, id.Id)
	machine, ok := ctx.Map.Get(spec.Vm).(*simulator.VirtualMachine)
	if object == nil || !ok {
		return missing(id)
	}
	result := failed(id, new(types.NotFound), "The object or item referred to could not be found.")
	ctx.WithLock(machine, func() {
		devices := slices.Clone(machine.Config.Hardware.Device)
		left := slices.DeleteFunc(devices, func(device types.BaseVirtualDevice) bool {
			found, ok := device.(*types.VirtualDisk)
			return ok && found.VDiskId != nil && found.VDiskId.Id == id.Id
		})
		if len(left) < len(machine.Config.Hardware.Device) {
			setDevices(ctx, machine, left)
			object.Config.ConsumerId = nil
			result = cnstypes.CnsVolumeOperationResult{VolumeId: id}
		}
	})
	return result
}

// page is the part of a list that a cursor is about, with the cursor of the next page.
func page[T any](all []T, cursor *cnstypes.CnsCursor) ([]T, cnstypes.CnsCursor) {
	total := int64(len(all))
	next := cnstypes.CnsCursor{Limit: total, Offset: total, TotalRecords: total}
	if cursor == nil {
		return all, next
	}
	from := min(max(cursor.Offset, 0), total)
	to := min(from+max(cursor.Limit, 1), total)
	next.Limit, next.Offset = cursor.Limit, to
	return all[from:to], next
}

func (m *volumeManager) CnsQueryVolume(ctx context.Context, req *cnstypes.CnsQueryVolume) soap.HasFault {
	if req.Filter == nil {
		// Older clients, govc among them, do not write the type of an empty filter.
		req.Filter = new(cnstypes.CnsQueryFilter)
	}
	body := m.CnsVolumeManager.CnsQueryVolume(ctx, req).(*methods.CnsQueryVolumeBody)
	result := &body.Res.Returnval
	slices.SortFunc(result.Volumes, func(one, other cnstypes.CnsVolume) int {
		return cmp.Compare(one.VolumeId.Id, other.VolumeId.Id)
	})
	result.Volumes, result.Cursor = page(result.Volumes, req.Filter.GetCnsQueryFilter().Cursor)
	return body
}

func (m *volumeManager) CnsQuerySnapshots(ctx *simulator.Context, req *cnstypes.CnsQuerySnapshots) soap.HasFault {
	vim := ctx.For(vim25.Path)
	// Of another object: the manager is locked while govmomi's own task works on it.
	task := simulator.CreateTask(cns.CnsDebugManagerInstance, "QuerySnapshots", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		body := m.CnsVolumeManager.CnsQuerySnapshots(ctx, req).(*methods.CnsQuerySnapshotsBody)
		result, fault := outcome(vim, body.Res.Returnval)
		if fault != nil {
			return nil, fault
		}
		found := result.(*cnstypes.CnsSnapshotQueryResult)
		slices.SortFunc(found.Entries, func(one, other cnstypes.CnsSnapshotQueryResultEntry) int {
			return cmp.Compare(one.Snapshot.SnapshotId.Id, other.Snapshot.SnapshotId.Id)
		})
		found.Entries, found.Cursor = page(found.Entries, req.SnapshotQueryFilter.Cursor)
		return found, nil
	})
	return &methods.CnsQuerySnapshotsBody{Res: &cnstypes.CnsQuerySnapshotsResponse{Returnval: task.Run(vim)}}
}
