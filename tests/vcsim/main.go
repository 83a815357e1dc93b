// vcsim of govmomi with Cloud Native Storage as its API documents it: attached disks are devices of their machine.
//
// The simulator and its Cloud Native Storage are govmomi's own (github.com/vmware/govmomi/simulator and cns/simulator). What that leaves out is in cns.go
// and associations.go. The flags are those of govmomi's vcsim, with two more: -task-delay and -disks.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/vmware/govmomi/simulator"

	_ "github.com/vmware/govmomi/pbm/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
)

func main() {
	model := simulator.VPX()
	flag.IntVar(&model.Datacenter, "dc", model.Datacenter, "Number of datacenters")
	flag.IntVar(&model.Cluster, "cluster", model.Cluster, "Number of clusters")
	flag.IntVar(&model.ClusterHost, "host", model.ClusterHost, "Number of hosts per cluster")
	flag.IntVar(&model.Datastore, "ds", model.Datastore, "Number of local datastores")
	flag.IntVar(&model.Machine, "vm", model.Machine, "Number of virtual machines per resource pool")
	flag.IntVar(&model.DelayConfig.Delay, "delay", model.DelayConfig.Delay, "Milliseconds that each call takes")
	delay := flag.Int("task-delay", 0, "Milliseconds that each task takes")
	flag.IntVar(&disks, "disks", disks, "Number of volumes that fit a machine")
	listen := flag.String("l", "127.0.0.1:8989", "Listen address")
	user := flag.String("username", "", "Login username")
	password := flag.String("password", "", "Login password")
	certificate := flag.String("tlscert", "", "Path to TLS certificate file")
	key := flag.String("tlskey", "", "Path to TLS key file")
	flag.Parse()

	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	simulator.TaskDelay.Delay = *delay
	// Else nothing can be read while a task waits.
	simulator.TaskDelay.MethodDelay = map[string]int{"LockHandoff": 0}
	pair, err := tls.LoadX509KeyPair(*certificate, *key)
	if err != nil {
		log.Fatal(err)
	}
	model.Service.RegisterEndpoints = true
	model.Service.Listen = &url.URL{Host: *listen, User: url.UserPassword(*user, *password)}
	model.Service.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server := model.Service.NewServer()
	fmt.Printf("export GOVC_URL=%s GOVC_SIM_PID=%d\n", server.URL, os.Getpid())

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
	model.Remove()
}
