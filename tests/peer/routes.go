package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/types"
	cloudprovider "k8s.io/cloud-provider"
)

// route is a route in the cloud's words.
type route struct {
	ID        string    `json:"id"`
	Blackhole bool      `json:"blackhole"`
	Spec      routeSpec `json:"spec"`
}

// routeSpec is what a route shall be.
type routeSpec struct {
	Cluster     string `json:"cluster"`
	Destination string `json:"destination"`
	Machine     string `json:"machine"`
	Node        string `json:"node"`
}

// routeChanges are many changes, of which upstream's interface asks for one at a time.
type routeChanges struct {
	Create []routeSpec `json:"create,omitempty"`
	Delete []string    `json:"delete,omitempty"`
}

type routeResults struct {
	Created []apiError `json:"created"`
	Deleted []apiError `json:"deleted"`
}

func (c *cloud) ListRoutes(ctx context.Context, cluster string) ([]*cloudprovider.Route, error) {
	found, err := list[route](ctx, c.client, "/v1/routes", url.Values{"cluster": {cluster}})
	if err != nil {
		return nil, err
	}
	routes := make([]*cloudprovider.Route, 0, len(found))
	for _, route := range found {
		routes = append(routes, &cloudprovider.Route{
			Name:            route.ID,
			TargetNode:      types.NodeName(route.Spec.Node),
			DestinationCIDR: route.Spec.Destination,
			Blackhole:       route.Blackhole,
		})
	}
	return routes, nil
}

func (c *cloud) CreateRoute(ctx context.Context, cluster, _ string, route *cloudprovider.Route) error {
	node, err := c.nodes.Get(string(route.TargetNode))
	if err != nil {
		return err
	}
	id, err := machineID(node.Spec.ProviderID)
	if err != nil {
		return fmt.Errorf("Node %s: %w", node.Name, err)
	}
	spec := routeSpec{Cluster: cluster, Destination: route.DestinationCIDR, Machine: id, Node: node.Name}
	results, err := c.changeRoutes(ctx, routeChanges{Create: []routeSpec{spec}})
	if err != nil {
		return err
	}
	return onlyResult(results.Created)
}

func (c *cloud) DeleteRoute(ctx context.Context, _ string, route *cloudprovider.Route) error {
	results, err := c.changeRoutes(ctx, routeChanges{Delete: []string{route.Name}})
	if err != nil {
		return err
	}
	if err = onlyResult(results.Deleted); isNotFound(err) {
		return nil
	}
	return err
}

func (c *cloud) changeRoutes(ctx context.Context, changes routeChanges) (*routeResults, error) {
	results := &routeResults{}
	return results, c.client.call(ctx, http.MethodPost, "/v1/routes/batch", nil, changes, results)
}

// onlyResult is what became of a single change.
func onlyResult(results []apiError) error {
	if len(results) != 1 {
		return fmt.Errorf("the cloud gave %d answers for one route", len(results))
	}
	if results[0].Status >= 300 {
		return &results[0]
	}
	return nil
}
