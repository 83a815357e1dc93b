package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
)

// fakeAPI answers each request, by method and URL, with a status and a JSON text, and keeps what was sent.
type fakeAPI struct {
	t       *testing.T
	answers map[string]answer
	sent    []string
	bodies  []string
}

type answer struct {
	status int
	text   string
}

func (f *fakeAPI) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if got := request.Header.Get("Authorization"); got != "Bearer secret" {
		f.t.Errorf("the token was sent as %q", got)
	}
	what := request.Method + " " + request.URL.RequestURI()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		f.t.Error(err)
	}
	f.sent, f.bodies = append(f.sent, what), append(f.bodies, string(body))
	known, ok := f.answers[what]
	if !ok {
		f.t.Errorf("nobody expects %s", what)
		known.status = http.StatusTeapot
	}
	writer.WriteHeader(known.status)
	writer.Write([]byte(known.text))
}

// cloudWith is the provider on a cloud that gives these answers.
func cloudWith(t *testing.T, answers map[string]answer) (*cloud, *fakeAPI) {
	t.Helper()
	fake := &fakeAPI{t: t, answers: answers}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	made, err := newCloud(strings.NewReader(`{"endpoint": "` + server.URL + `/", "token": "secret"}`))
	if err != nil {
		t.Fatal(err)
	}
	return made.(*cloud), fake
}

func node(name, providerID string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NodeSpec{ProviderID: providerID}}
}

const aMachine = `{"id": "vm-1", "name": "one", "type": "small", "zone": "sim-1a", "region": "sim-1", "state": "stopped",
	"addresses": [{"network": "private", "ip": "10.0.0.1"}, {"network": "public", "ip": "198.51.100.9"}], "labels": {"rack": "7"}}`

func TestABadCloudConfigIsRefused(t *testing.T) {
	for _, text := range []string{"", "{}", `{"endpoint": "http://a"}`, `{"endpoint": "nowhere", "token": "x"}`,
		`{"endpoint": "http://a", "token": "x", "other": 1}`} {
		if _, err := newCloud(strings.NewReader(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if _, err := newCloud(nil); err == nil {
		t.Error("no cloud config was taken")
	}
}

func TestANodeWithAProviderIDIsLookedUpByItInOneRequest(t *testing.T) {
	cloud, fake := cloudWith(t, map[string]answer{"GET /v1/instances/vm-1": {200, aMachine}})
	metadata, err := cloud.InstanceMetadata(context.Background(), node("other", "sim://vm-1"))
	if err != nil {
		t.Fatal(err)
	}
	if metadata.ProviderID != "sim://vm-1" || metadata.InstanceType != "small" || metadata.Zone != "sim-1a" ||
		metadata.Region != "sim-1" || metadata.AdditionalLabels["rack"] != "7" {
		t.Errorf("%+v", metadata)
	}
	wanted := []v1.NodeAddress{{Type: v1.NodeHostName, Address: "one"}, {Type: v1.NodeInternalIP, Address: "10.0.0.1"},
		{Type: v1.NodeExternalIP, Address: "198.51.100.9"}}
	if len(metadata.NodeAddresses) != 3 || metadata.NodeAddresses[0] != wanted[0] || metadata.NodeAddresses[1] != wanted[1] ||
		metadata.NodeAddresses[2] != wanted[2] {
		t.Errorf("%+v", metadata.NodeAddresses)
	}
	if shut, err := cloud.InstanceShutdown(context.Background(), node("other", "sim://vm-1")); !shut || err != nil {
		t.Errorf("shut down: %v, %v", shut, err)
	}
	if len(fake.sent) != 2 {
		t.Errorf("%v", fake.sent)
	}
}

func TestANodeWithoutAProviderIDIsLookedUpByName(t *testing.T) {
	cloud, _ := cloudWith(t, map[string]answer{
		"GET /v1/instances?names=one":            {200, `{"items": [], "next": "at-1"}`},
		"GET /v1/instances?names=one&token=at-1": {200, `{"items": [` + aMachine + `], "next": null}`},
		"GET /v1/instances?names=twin":           {200, `{"items": [` + aMachine + `,` + aMachine + `]}`},
	})
	metadata, err := cloud.InstanceMetadata(context.Background(), node("one", ""))
	if err != nil || metadata.ProviderID != "sim://vm-1" {
		t.Errorf("%+v, %v", metadata, err)
	}
	if _, err := cloud.InstanceMetadata(context.Background(), node("twin", "")); err == nil {
		t.Error("one of two machines was taken")
	}
}

func TestOnlyWhatTheCloudDoesNotKnowDoesNotExist(t *testing.T) {
	cloud, _ := cloudWith(t, map[string]answer{
		"GET /v1/instances/vm-1": {404, `{"error": {"status": 404, "message": "there is no machine vm-1"}}`},
		"GET /v1/instances/vm-2": {503, `down`},
	})
	if exists, err := cloud.InstanceExists(context.Background(), node("a", "sim://vm-1")); exists || err != nil {
		t.Errorf("%v, %v", exists, err)
	}
	if _, err := cloud.InstanceMetadata(context.Background(), node("a", "sim://vm-1")); !errors.Is(err, cloudprovider.InstanceNotFound) {
		t.Error(err)
	}
	if _, err := cloud.InstanceExists(context.Background(), node("a", "sim://vm-2")); err == nil || !strings.Contains(err.Error(), "503") {
		t.Error(err)
	}
	if _, err := cloud.InstanceExists(context.Background(), node("a", "aws:///a/i-1")); err == nil {
		t.Error("a Node of another cloud was looked up")
	}
}

func service() *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u-1"},
		Spec:       v1.ServiceSpec{Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80, NodePort: 30080}}},
	}
}

const (
	findBalancer = "GET /v1/load-balancers?cluster=blue&name=au1"
	aSpec        = `{"name": "au1", "cluster": "blue", "owner": "u-1", "scheme": "public", "ports": [{"protocol": "tcp", "port": 80, "nodePort": 30080}],
		"targets": ["vm-1", "vm-2"], "sourceRanges": [], "affinitySeconds": null, "healthCheckPort": null, "requestedAddress": null}`
	aBalancer = `{"id": "lb-1", "state": "active", "address": "198.51.100.1", "spec": ` + aSpec + `}`
)

func TestALoadBalancerIsMadeWhenThereIsNone(t *testing.T) {
	cloud, fake := cloudWith(t, map[string]answer{
		findBalancer:              {200, `{"items": []}`},
		"POST /v1/load-balancers": {201, aBalancer},
	})
	nodes := []*v1.Node{node("b", "sim://vm-2"), node("new", ""), node("a", "sim://vm-1")}
	status, err := cloud.EnsureLoadBalancer(context.Background(), "blue", service(), nodes)
	if err != nil || len(status.Ingress) != 1 || status.Ingress[0].IP != "198.51.100.1" {
		t.Fatalf("%+v, %v", status, err)
	}
	var wanted bytes.Buffer
	if err := json.Compact(&wanted, []byte(aSpec)); err != nil {
		t.Fatal(err)
	}
	if fake.bodies[1] != wanted.String() {
		t.Errorf("sent %s, not %s", fake.bodies[1], &wanted)
	}
}

func TestALoadBalancerThatIsRightIsLeftAlone(t *testing.T) {
	cloud, fake := cloudWith(t, map[string]answer{findBalancer: {200, `{"items": [` + aBalancer + `]}`}})
	nodes := []*v1.Node{node("a", "sim://vm-1"), node("b", "sim://vm-2")}
	if _, err := cloud.EnsureLoadBalancer(context.Background(), "blue", service(), nodes); err != nil {
		t.Error(err)
	}
	if err := cloud.UpdateLoadBalancer(context.Background(), "blue", service(), nodes); err != nil {
		t.Error(err)
	}
	if len(fake.sent) != 2 {
		t.Errorf("%v", fake.sent)
	}
}

func TestChangesAreWrittenAndWhatIsBeingBuiltIsLookedAtAgain(t *testing.T) {
	building := strings.Replace(aBalancer, `"active", "address": "198.51.100.1"`, `"building", "address": null`, 1)
	cloud, fake := cloudWith(t, map[string]answer{
		findBalancer:                          {200, `{"items": [` + aBalancer + `]}`},
		"PUT /v1/load-balancers/lb-1":         {200, building},
		"PUT /v1/load-balancers/lb-1/targets": {200, aBalancer},
		"DELETE /v1/load-balancers/lb-1":      {404, `{"error": {"status": 404, "message": "gone"}}`},
	})
	nodes := []*v1.Node{node("a", "sim://vm-1")}
	var later *api.RetryError
	if _, err := cloud.EnsureLoadBalancer(context.Background(), "blue", service(), nodes); !errors.As(err, &later) {
		t.Error(err)
	}
	if err := cloud.UpdateLoadBalancer(context.Background(), "blue", service(), nodes); err != nil {
		t.Error(err)
	}
	if got := fake.bodies[3]; got != `{"targets":["vm-1"]}` {
		t.Error(got)
	}
	if err := cloud.EnsureLoadBalancerDeleted(context.Background(), "blue", service()); err != nil {
		t.Error(err)
	}
}

func TestRoutesGoToTheMachinesOfTheirNodes(t *testing.T) {
	cloud, fake := cloudWith(t, map[string]answer{
		"GET /v1/routes?cluster=blue": {200, `{"items": [{"id": "rt-1", "blackhole": true,
			"spec": {"cluster": "blue", "destination": "10.8.0.0/24", "machine": "vm-1", "node": "a"}}]}`},
		"POST /v1/routes/batch": {200, `{"created": [{"status": 409, "message": "taken"}], "deleted": [{"status": 404, "message": "gone"}]}`},
	})
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := nodes.Add(node("a", "sim://vm-1")); err != nil {
		t.Fatal(err)
	}
	cloud.nodes = corelisters.NewNodeLister(nodes)
	routes, err := cloud.ListRoutes(context.Background(), "blue")
	if err != nil || len(routes) != 1 || routes[0].Name != "rt-1" || routes[0].TargetNode != "a" || !routes[0].Blackhole {
		t.Fatalf("%+v, %v", routes, err)
	}
	wanted := &cloudprovider.Route{TargetNode: "a", DestinationCIDR: "10.8.1.0/24"}
	if err := cloud.CreateRoute(context.Background(), "blue", "", wanted); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Error(err)
	}
	if got := fake.bodies[1]; got != `{"create":[{"cluster":"blue","destination":"10.8.1.0/24","machine":"vm-1","node":"a"}]}` {
		t.Error(got)
	}
	if err := cloud.DeleteRoute(context.Background(), "blue", routes[0]); err != nil {
		t.Error(err)
	}
	wanted.TargetNode = "nobody"
	if err := cloud.CreateRoute(context.Background(), "blue", "", wanted); err == nil {
		t.Error("a route to no Node was made")
	}
}
