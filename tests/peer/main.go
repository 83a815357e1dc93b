// Command peer is what Cloudwit is compared with: upstream's cloud controllers (k8s.io/cloud-provider) with a provider for the simulated
// cloud of tests/sim-cloud, put together as upstream's own sample does it.
//
//	peer --kubeconfig FILE --cloud-provider sim --cloud-config FILE [upstream's flags]
//
// Nothing of upstream's is changed. The provider is what a careful author would write: the newer of upstream's two interfaces for
// instances, one request for each question, connections that are kept.
//
//	main.go           upstream's command
//	cloud.go          the provider and its configuration
//	client.go         HTTP and JSON
//	instances.go      machines behind Nodes
//	load_balancer.go  load balancers behind Services
//	routes.go         routes to the Pods of Nodes
package main

import (
	"os"

	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the Kubernetes client
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	"k8s.io/klog/v2"
)

func main() {
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		klog.Fatalf("making the options: %v", err)
	}
	command := app.NewCloudControllerManagerCommand(opts, initCloud, app.DefaultInitFuncConstructors,
		names.CCMControllerAliases(), flag.NamedFlagSets{}, wait.NeverStop)
	os.Exit(cli.Run(command))
}

// initCloud makes the provider that the flags name.
func initCloud(completed *config.CompletedConfig) cloudprovider.Interface {
	flags := completed.ComponentConfig.KubeCloudShared.CloudProvider
	cloud, err := cloudprovider.InitCloudProvider(flags.Name, flags.CloudConfigFile)
	if err != nil {
		klog.Fatalf("making the provider %q: %v", flags.Name, err)
	}
	if cloud == nil {
		klog.Fatalf("there is no provider %q", flags.Name)
	}
	return cloud
}
