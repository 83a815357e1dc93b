// Package export_cloudwit_provider_load_balancers is the interface `load-balancers`.
package export_cloudwit_provider_load_balancers

import (
	"fmt"
	"slices"

	"go-machines/host"
	"go-machines/imports/cloudwit_provider_common"
	contract "go-machines/imports/cloudwit_provider_load_balancers"
	"go-machines/imports/cloudwit_provider_services"
	"go-machines/provider"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// How soon to call again while the cloud builds, in milliseconds.
const building = 200

type (
	failure = cloudwit_provider_common.Failure
	changes = []contract.AnnotationChange
	service = cloudwit_provider_services.Service
)

var protocols = map[cloudwit_provider_services.Protocol]string{
	cloudwit_provider_services.ProtocolTcp:  "tcp",
	cloudwit_provider_services.ProtocolUdp:  "udp",
	cloudwit_provider_services.ProtocolSctp: "sctp",
}

// Name needs no network.
func Name(service service) string { return provider.BalancerName(service.Uid) }

// Get finds it by its owner.
func Get(service service) witTypes.Result[witTypes.Option[contract.Balancer], failure] {
	type found = witTypes.Option[contract.Balancer]
	cloud, wrong := host.Cloud()
	if wrong != nil {
		return witTypes.Err[found](*wrong)
	}
	balancers, wrong := cloud.Balancers([]string{service.Uid})
	if wrong != nil {
		return witTypes.Err[found](*wrong)
	}
	if balancer, ok := balancers[service.Uid]; ok {
		return witTypes.Ok[found, failure](witTypes.Some(described(balancer)))
	}
	return witTypes.Ok[found, failure](witTypes.None[contract.Balancer]())
}

// Ensure makes it or brings it to what the Service asks for.
func Ensure(service service, targets []contract.Target, _ witTypes.Option[string]) witTypes.Result[contract.Balancer, failure] {
	cloud, wrong := host.Cloud()
	if wrong != nil {
		return witTypes.Err[contract.Balancer](*wrong)
	}
	wanted := provider.Balancer{Name: Name(service), Owner: service.Uid, Targets: ids(targets)}
	for _, port := range service.Ports {
		entry := provider.Port{Protocol: protocols[port.Protocol], Port: port.Port}
		if port.NodePort.IsSome() {
			nodePort := port.NodePort.Some()
			entry.NodePort = &nodePort
		}
		wanted.Ports = append(wanted.Ports, entry)
	}
	made, wrong := cloud.PutBalancer(wanted)
	if wrong != nil {
		return witTypes.Err[contract.Balancer](*wrong)
	}
	return ensured(made)
}

// The answer of Ensure: what it is while the cloud builds, and once it is ready.
func ensured(balancer provider.Balancer) witTypes.Result[contract.Balancer, failure] {
	if balancer.State == "ready" {
		return witTypes.Ok[contract.Balancer, failure](described(balancer))
	}
	return witTypes.Err[contract.Balancer](failure{
		Kind:       cloudwit_provider_common.MakeFailureKindPending(""),
		Code:       witTypes.None[string](),
		Message:    fmt.Sprintf("the load balancer %s is being built", balancer.Name),
		RetryAfter: witTypes.Some[uint32](building),
	})
}

// UpdateTargets reads one list of all, and makes a request for each whose targets differ.
func UpdateTargets(
	updates []contract.TargetUpdate, targets []contract.Target,
) witTypes.Result[[]witTypes.Result[changes, failure], failure] {
	type results = []witTypes.Result[changes, failure]
	cloud, wrong := host.Cloud()
	if wrong != nil {
		return witTypes.Err[results](*wrong)
	}
	uids := make([]string, len(updates))
	for at, update := range updates {
		uids[at] = update.Service.Uid
	}
	balancers, wrong := cloud.Balancers(uids)
	if wrong != nil {
		return witTypes.Err[results](*wrong)
	}
	wanted := ids(targets)
	answers := make(results, len(updates))
	for at, uid := range uids {
		balancer, known := balancers[uid]
		var wrong *failure
		if !known {
			wrong = provider.Fail(provider.NotFound, "there is no load balancer %s", provider.BalancerName(uid))
		} else if !slices.Equal(balancer.Targets, wanted) {
			wrong = cloud.SetTargets(balancer.Name, wanted)
		}
		answers[at] = done(wrong)
	}
	return witTypes.Ok[results, failure](answers)
}

// Delete succeeds when there is none.
func Delete(service service, _ witTypes.Option[string]) witTypes.Result[changes, failure] {
	cloud, wrong := host.Cloud()
	if wrong == nil {
		wrong = cloud.DeleteBalancer(Name(service))
	}
	return done(wrong)
}

func done(wrong *failure) witTypes.Result[changes, failure] {
	if wrong != nil {
		return witTypes.Err[changes](*wrong)
	}
	return witTypes.Ok[changes, failure](nil)
}

func ids(targets []contract.Target) []string {
	var known []string
	for _, target := range targets {
		if target.Node.ProviderId.IsSome() {
			known = append(known, target.Node.ProviderId.Some())
		}
	}
	return provider.TargetIDs(known)
}

func described(balancer provider.Balancer) contract.Balancer {
	if balancer.Address == "" {
		return contract.Balancer{}
	}
	address := witTypes.Tuple2[string, witTypes.Option[cloudwit_provider_services.IpMode]]{
		F0: balancer.Address, F1: witTypes.None[cloudwit_provider_services.IpMode](),
	}
	return contract.Balancer{Ingress: []cloudwit_provider_services.Ingress{{Endpoint: cloudwit_provider_services.MakeEndpointIp(address)}}}
}
