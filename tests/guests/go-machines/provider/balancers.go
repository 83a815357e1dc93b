package provider

import (
	"net/url"
	"slices"
	"strings"
)

// Balancer is a load balancer of the cloud: `PUT /balancers/{name}` makes one or changes it, and says whether it is ready.
type Balancer struct {
	Name    string   `json:"name"`
	Owner   string   `json:"owner"`
	Address string   `json:"address,omitempty"`
	State   string   `json:"state,omitempty"`
	Ports   []Port   `json:"ports,omitempty"`
	Targets []string `json:"targets"`
}

// Port is one that a load balancer listens on.
type Port struct {
	Protocol string  `json:"protocol"`
	Port     uint16  `json:"port"`
	NodePort *uint16 `json:"nodePort"`
}

// BalancerName is the name of the load balancer of the Service with that uid.
func BalancerName(uid string) string { return "lb-" + uid }

// TargetIDs are the machines behind these provider ids, in order.
func TargetIDs(providerIDs []string) []string {
	ids := []string{}
	for _, providerID := range providerIDs {
		if id, ok := machineID(providerID); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Balancers are those of these Services, by owner.
func (cloud *Cloud) Balancers(uids []string) (map[string]Balancer, *Failure) {
	var answer struct {
		Balancers *[]Balancer `json:"balancers"`
	}
	escaped := make([]string, len(uids))
	for at, uid := range uids {
		escaped[at] = url.QueryEscape(uid)
	}
	if failure := cloud.Request("GET", "/balancers?owners="+strings.Join(escaped, ","), nil, &answer); failure != nil {
		return nil, failure
	}
	if answer.Balancers == nil {
		return nil, Fail(Unavailable, "the answer about load balancers has no list of them")
	}
	found := make(map[string]Balancer, len(*answer.Balancers))
	for _, balancer := range *answer.Balancers {
		found[balancer.Owner] = balancer
	}
	return found, nil
}

// PutBalancer makes it or changes it.
func (cloud *Cloud) PutBalancer(wanted Balancer) (made Balancer, failure *Failure) {
	failure = cloud.Request("PUT", "/balancers/"+url.PathEscape(wanted.Name), wanted, &made)
	return made, failure
}

// SetTargets writes the machines of one.
func (cloud *Cloud) SetTargets(name string, targets []string) *Failure {
	body := map[string][]string{"targets": targets}
	return cloud.Request("PATCH", "/balancers/"+url.PathEscape(name), body, nil)
}

// DeleteBalancer deletes it. One that is not there is deleted already.
func (cloud *Cloud) DeleteBalancer(name string) *Failure {
	failure := cloud.Request("DELETE", "/balancers/"+url.PathEscape(name), nil, nil)
	if failure != nil && failure.Kind.Tag() == NotFound.Tag() {
		return nil
	}
	return failure
}
