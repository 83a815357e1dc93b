package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
)

// machine is a machine in the cloud's words.
type machine struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Type      string            `json:"type"`
	Zone      string            `json:"zone"`
	Region    string            `json:"region"`
	State     string            `json:"state"`
	Addresses []machineAddress  `json:"addresses"`
	Labels    map[string]string `json:"labels"`
}

// machineAddress is an address in the network "private" or "public".
type machineAddress struct {
	Network string `json:"network"`
	IP      string `json:"ip"`
}

const stateStopped = "stopped"

func (c *cloud) InstanceExists(ctx context.Context, node *v1.Node) (bool, error) {
	found, err := c.machineOf(ctx, node)
	return found != nil, err
}

func (c *cloud) InstanceShutdown(ctx context.Context, node *v1.Node) (bool, error) {
	found, err := c.machineOf(ctx, node)
	if err != nil {
		return false, err
	}
	if found == nil {
		return false, cloudprovider.InstanceNotFound
	}
	return found.State == stateStopped, nil
}

func (c *cloud) InstanceMetadata(ctx context.Context, node *v1.Node) (*cloudprovider.InstanceMetadata, error) {
	found, err := c.machineOf(ctx, node)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, cloudprovider.InstanceNotFound
	}
	return &cloudprovider.InstanceMetadata{
		ProviderID:       providerIDPrefix + found.ID,
		InstanceType:     found.Type,
		NodeAddresses:    found.nodeAddresses(),
		Zone:             found.Zone,
		Region:           found.Region,
		AdditionalLabels: found.Labels,
	}, nil
}

// machineOf asks for the machine behind a Node: by the provider id if there is one, else by name. It is nil if there is none.
func (c *cloud) machineOf(ctx context.Context, node *v1.Node) (*machine, error) {
	if node.Spec.ProviderID == "" {
		return c.machineNamed(ctx, node.Name)
	}
	id, err := machineID(node.Spec.ProviderID)
	if err != nil {
		return nil, err
	}
	found := &machine{}
	err = c.client.call(ctx, http.MethodGet, "/v1/instances/"+url.PathEscape(id), nil, nil, found)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (c *cloud) machineNamed(ctx context.Context, name string) (*machine, error) {
	found, err := list[machine](ctx, c.client, "/v1/instances", url.Values{"names": {name}})
	if err != nil {
		return nil, err
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	default:
		return nil, fmt.Errorf("%d machines are named %s", len(found), name)
	}
}

// machineID takes the id of a machine out of a provider id.
func machineID(providerID string) (string, error) {
	id, ok := strings.CutPrefix(providerID, providerIDPrefix)
	if !ok || id == "" {
		return "", fmt.Errorf("provider id %q does not begin with %s", providerID, providerIDPrefix)
	}
	return id, nil
}

func (m *machine) nodeAddresses() []v1.NodeAddress {
	addresses := []v1.NodeAddress{{Type: v1.NodeHostName, Address: m.Name}}
	for _, address := range m.Addresses {
		kind := v1.NodeInternalIP
		if address.Network == "public" {
			kind = v1.NodeExternalIP
		}
		addresses = append(addresses, v1.NodeAddress{Type: kind, Address: address.IP})
	}
	return addresses
}
