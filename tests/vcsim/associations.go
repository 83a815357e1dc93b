package main

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// associations says which machines have which disks.
type associations struct {
	mo.VcenterVStorageObjectManager
}

// associate adds the method that govmomi's manager of disks lacks: calls of it go to an object of ours.
func associate(registry *simulator.Registry) {
	own := new(associations)
	own.Self = types.ManagedObjectReference{Type: "VcenterVStorageObjectManager", Value: "associations"}
	registry.Put(own)
	registry.Handler = func(_ *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		if method.Name == "RetrieveVStorageObjectAssociations" {
			method.This = own.Self
		}
		return nil, nil
	}
}

func (*associations) RetrieveVStorageObjectAssociations(
	ctx *simulator.Context, req *types.RetrieveVStorageObjectAssociations,
) soap.HasFault {
	response := new(types.RetrieveVStorageObjectAssociationsResponse)
	for _, asked := range req.Ids {
		answer := types.VStorageObjectAssociations{Id: asked.Id}
		if objects := ctx.Map.VStorageObjectManager().Catalog()[asked.Datastore]; objects[asked.Id] == nil {
			answer.Fault = &types.LocalizedMethodFault{Fault: new(types.NotFound)}
		}
		for _, entity := range ctx.Map.All("VirtualMachine") {
			machine := entity.(*simulator.VirtualMachine)
			for _, device := range machine.Config.Hardware.Device {
				if device, ok := device.(*types.VirtualDisk); ok && device.VDiskId != nil && *device.VDiskId == asked.Id {
					answer.VmDiskAssociations = append(answer.VmDiskAssociations, types.VStorageObjectAssociationsVmDiskAssociations{
						VmId: machine.Self.Value, DiskKey: device.Key,
					})
				}
			}
		}
		response.Returnval = append(response.Returnval, answer)
	}
	return &methods.RetrieveVStorageObjectAssociationsBody{Res: response}
}
