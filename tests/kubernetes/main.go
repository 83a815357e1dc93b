// Command kubernetes is all of Kubernetes in one program, for clusters with real Nodes on one machine:
//
//	kubernetes COMPONENT [FLAG...]
//
// COMPONENT is etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy or kubectl. They share most of their
// packages, so that one program takes a fifth of the room and of the build time that seven would take. Flags are the component's own;
// etcd has those of etcd.go.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and machines may have no list of them

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the API client
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric of the build's version
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components makes the command of each. Only the one that runs is made, since some set global state when they are made.
var components = map[string]func() *cobra.Command{
	"etcd":                    etcdCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	if len(os.Args) < 2 || components[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: kubernetes COMPONENT [FLAG...], COMPONENT is one of %s\n", strings.Join(names(), ", "))
		os.Exit(2)
	}
	component := os.Args[1]
	// Each component reads os.Args as its own command line.
	os.Args = append([]string{component}, os.Args[2:]...)
	os.Exit(cli.Run(components[component]()))
}

func names() []string {
	var all []string
	for name := range components {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}
