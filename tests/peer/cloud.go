package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	cloudprovider "k8s.io/cloud-provider"
)

// providerName is what --cloud-provider calls it.
const providerName = "sim"

// providerIDPrefix is how the provider ids of its machines begin, as in Cloudwit's provider.
const providerIDPrefix = providerName + "://"

func init() {
	cloudprovider.RegisterCloudProvider(providerName, newCloud)
}

// cloudConfig is the content of --cloud-config, as JSON.
type cloudConfig struct {
	// Endpoint is the base URL of the API.
	Endpoint string `json:"endpoint"`
	// Token is sent as bearer token.
	Token string `json:"token"`
}

// cloud is the provider. It implements cloudprovider.Interface, and each of the parts that it offers.
type cloud struct {
	client *client
	nodes  corelisters.NodeLister
}

var (
	_ cloudprovider.Interface    = &cloud{}
	_ cloudprovider.InformerUser = &cloud{}
	_ cloudprovider.InstancesV2  = &cloud{}
	_ cloudprovider.LoadBalancer = &cloud{}
	_ cloudprovider.Routes       = &cloud{}
)

func newCloud(file io.Reader) (cloudprovider.Interface, error) {
	if file == nil {
		return nil, errors.New("the provider sim needs --cloud-config")
	}
	var config cloudConfig
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil {
		return nil, fmt.Errorf("reading the cloud config: %w", err)
	}
	endpoint, err := url.Parse(config.Endpoint)
	if err != nil || endpoint.Host == "" {
		return nil, fmt.Errorf("endpoint %q in the cloud config is no URL", config.Endpoint)
	}
	if config.Token == "" {
		return nil, errors.New("token is missing in the cloud config")
	}
	return &cloud{client: newClient(strings.TrimSuffix(config.Endpoint, "/"), config.Token)}, nil
}

// SetInformers takes the Nodes that the controllers watch anyway.
func (c *cloud) SetInformers(factory informers.SharedInformerFactory) {
	c.nodes = factory.Core().V1().Nodes().Lister()
}

func (c *cloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}

func (c *cloud) ProviderName() string { return providerName }

func (c *cloud) HasClusterID() bool { return true }

func (c *cloud) InstancesV2() (cloudprovider.InstancesV2, bool) { return c, true }

func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c, true }

func (c *cloud) Routes() (cloudprovider.Routes, bool) { return c, true }

// Instances and Zones are what InstancesV2 stands in place of.
func (c *cloud) Instances() (cloudprovider.Instances, bool) { return nil, false }

func (c *cloud) Zones() (cloudprovider.Zones, bool) { return nil, false }

func (c *cloud) Clusters() (cloudprovider.Clusters, bool) { return nil, false }
