//go:build kubernetes_1_29

package main

import (
	"context"

	genericfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// complete applies what the flags say to the process, and fills in the rest.
func complete(_ context.Context, server *options.ServerRunOptions) (options.CompletedOptions, error) {
	if err := logsapi.ValidateAndApply(server.Logs, genericfeature.DefaultFeatureGate); err != nil {
		return options.CompletedOptions{}, err
	}
	return server.Complete()
}

// serve returns when the API server has ended.
func serve(ctx context.Context, completed options.CompletedOptions) error {
	return app.Run(completed, ctx.Done())
}
