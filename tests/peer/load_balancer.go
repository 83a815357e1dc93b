package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
)

const (
	// schemeAnnotation tells who can reach a load balancer: public (the default) or internal.
	schemeAnnotation = "sim.cloudwit.dev/scheme"
	// buildPoll is when to look again at what the cloud builds.
	buildPoll = time.Second
	// stateActive is the state of a load balancer that has been built.
	stateActive = "active"
)

// balancer is a load balancer in the cloud's words.
type balancer struct {
	ID      string       `json:"id"`
	State   string       `json:"state"`
	Address string       `json:"address"`
	Spec    balancerSpec `json:"spec"`
}

// balancerSpec is what a load balancer shall be.
type balancerSpec struct {
	Name             string         `json:"name"`
	Cluster          string         `json:"cluster"`
	Owner            string         `json:"owner"`
	Scheme           string         `json:"scheme"`
	Ports            []balancerPort `json:"ports"`
	Targets          []string       `json:"targets"`
	SourceRanges     []string       `json:"sourceRanges"`
	AffinitySeconds  *int32         `json:"affinitySeconds"`
	HealthCheckPort  *int32         `json:"healthCheckPort"`
	RequestedAddress *string        `json:"requestedAddress"`
}

type balancerPort struct {
	Protocol string `json:"protocol"`
	Port     int32  `json:"port"`
	NodePort int32  `json:"nodePort"`
}

func (c *cloud) GetLoadBalancerName(_ context.Context, _ string, service *v1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(service)
}

func (c *cloud) GetLoadBalancer(ctx context.Context, cluster string, service *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	existing, err := c.balancerOf(ctx, cluster, service)
	if err != nil || existing == nil {
		return nil, false, err
	}
	return existing.status(), true, nil
}

func (c *cloud) EnsureLoadBalancer(ctx context.Context, cluster string, service *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error) {
	wanted, err := specOf(cluster, service, nodes)
	if err != nil {
		return nil, err
	}
	existing, err := c.balancerOf(ctx, cluster, service)
	if err != nil {
		return nil, err
	}
	switch {
	case existing == nil:
		existing = &balancer{}
		err = c.client.call(ctx, http.MethodPost, "/v1/load-balancers", nil, wanted, existing)
	case !reflect.DeepEqual(existing.Spec, *wanted):
		path := balancerPath(existing.ID)
		existing = &balancer{}
		err = c.client.call(ctx, http.MethodPut, path, nil, wanted, existing)
	}
	if err != nil {
		return nil, err
	}
	if existing.State != stateActive {
		return nil, api.NewRetryError(fmt.Sprintf("the cloud builds load balancer %s", existing.ID), buildPoll)
	}
	return existing.status(), nil
}

func (c *cloud) UpdateLoadBalancer(ctx context.Context, cluster string, service *v1.Service, nodes []*v1.Node) error {
	existing, err := c.balancerOf(ctx, cluster, service)
	if err != nil {
		return err
	}
	if existing == nil {
		return fmt.Errorf("Service %s/%s has no load balancer", service.Namespace, service.Name)
	}
	targets := machineIDs(nodes)
	if slices.Equal(existing.Spec.Targets, targets) {
		return nil
	}
	body := map[string][]string{"targets": targets}
	return c.client.call(ctx, http.MethodPut, balancerPath(existing.ID)+"/targets", nil, body, nil)
}

func (c *cloud) EnsureLoadBalancerDeleted(ctx context.Context, cluster string, service *v1.Service) error {
	existing, err := c.balancerOf(ctx, cluster, service)
	if err != nil || existing == nil {
		return err
	}
	err = c.client.call(ctx, http.MethodDelete, balancerPath(existing.ID), nil, nil, nil)
	if isNotFound(err) {
		return nil
	}
	return err
}

// balancerOf asks for the load balancer of a Service. Its name is unique in its cluster. It is nil if there is none.
func (c *cloud) balancerOf(ctx context.Context, cluster string, service *v1.Service) (*balancer, error) {
	query := url.Values{"cluster": {cluster}, "name": {cloudprovider.DefaultLoadBalancerName(service)}}
	found, err := list[balancer](ctx, c.client, "/v1/load-balancers", query)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func balancerPath(id string) string {
	return "/v1/load-balancers/" + url.PathEscape(id)
}

func (b *balancer) status() *v1.LoadBalancerStatus {
	status := &v1.LoadBalancerStatus{}
	if b.Address != "" {
		status.Ingress = []v1.LoadBalancerIngress{{IP: b.Address}}
	}
	return status
}

// specOf is what a Service asks for. What the cloud cannot do is said before anything is changed.
func specOf(cluster string, service *v1.Service, nodes []*v1.Node) (*balancerSpec, error) {
	spec := &balancerSpec{
		Name:         cloudprovider.DefaultLoadBalancerName(service),
		Cluster:      cluster,
		Owner:        string(service.UID),
		Scheme:       "public",
		Ports:        []balancerPort{},
		Targets:      machineIDs(nodes),
		SourceRanges: []string{},
	}
	if scheme, ok := service.Annotations[schemeAnnotation]; ok {
		if scheme != "public" && scheme != "internal" {
			return nil, fmt.Errorf("annotation %s is %q; it can be public or internal", schemeAnnotation, scheme)
		}
		spec.Scheme = scheme
	}
	for _, port := range service.Spec.Ports {
		if port.Protocol == v1.ProtocolSCTP {
			return nil, fmt.Errorf("port %d is SCTP; the simulated cloud knows TCP and UDP", port.Port)
		}
		if port.NodePort == 0 {
			return nil, fmt.Errorf("port %d has no node port; the simulated cloud needs one", port.Port)
		}
		protocol := strings.ToLower(string(port.Protocol))
		spec.Ports = append(spec.Ports, balancerPort{Protocol: protocol, Port: port.Port, NodePort: port.NodePort})
	}
	spec.SourceRanges = append(spec.SourceRanges, service.Spec.LoadBalancerSourceRanges...)
	if affinity := service.Spec.SessionAffinityConfig; service.Spec.SessionAffinity == v1.ServiceAffinityClientIP &&
		affinity != nil && affinity.ClientIP != nil {
		spec.AffinitySeconds = affinity.ClientIP.TimeoutSeconds
	}
	if port := service.Spec.HealthCheckNodePort; port != 0 {
		spec.HealthCheckPort = &port
	}
	if address := service.Spec.LoadBalancerIP; address != "" {
		spec.RequestedAddress = &address
	}
	return spec, nil
}

// machineIDs are the machines behind Nodes, sorted. A Node that has no provider id yet comes with a later call.
func machineIDs(nodes []*v1.Node) []string {
	ids := make([]string, 0, len(nodes))
	for _, node := range nodes {
		if id, err := machineID(node.Spec.ProviderID); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
