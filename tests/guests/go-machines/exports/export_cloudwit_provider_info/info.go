// Package export_cloudwit_provider_info is the interface `info`: who the provider is, is its configuration right, does its cloud answer.
// The name of the package and those of its functions are what the generated bindings call.
package export_cloudwit_provider_info

import (
	"go-machines/host"
	"go-machines/imports/cloudwit_provider_common"
	"go-machines/imports/cloudwit_provider_config"
	"go-machines/imports/cloudwit_provider_info"
	"go-machines/provider"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// Describe uses no network and succeeds whatever the configuration is.
func Describe() cloudwit_provider_info.Description {
	description := cloudwit_provider_info.Description{
		Name:               "go-machines",
		Version:            "0.1.0",
		ProviderIdPrefixes: []string{provider.Prefix},
		Secrets: []cloudwit_provider_info.SecretWish{{
			Name:   host.Token,
			Reason: "the token of the cloud's API",
			Uses:   []cloudwit_provider_info.SecretUse{cloudwit_provider_info.SecretUsePlaceholder},
		}},
		LookupBatch: witTypes.None[uint32](),
	}
	if config, _ := provider.Parse(cloudwit_provider_config.Text()); config != nil {
		description.Http = []cloudwit_provider_info.HttpWish{{
			Scheme:  config.Scheme,
			Host:    config.Host,
			Port:    config.Port,
			Methods: []string{"DELETE", "GET", "PATCH", "PUT"},
			Reason:  "the cloud's API",
		}}
	}
	return description
}

// Check finds all problems of the configuration.
func Check() []cloudwit_provider_info.Problem {
	_, problems := provider.Parse(cloudwit_provider_config.Text())
	return problems
}

// Probe makes one cheap call with the token.
func Probe() witTypes.Result[witTypes.Unit, cloudwit_provider_common.Failure] {
	cloud, failure := host.Cloud()
	if failure == nil {
		failure = cloud.Probe()
	}
	if failure != nil {
		return witTypes.Err[witTypes.Unit](*failure)
	}
	return witTypes.Ok[witTypes.Unit, cloudwit_provider_common.Failure](witTypes.Unit{})
}
