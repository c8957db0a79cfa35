package cli

import (
	"fmt"
	"log/slog"
	"net/url"

	"github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
)

// clientOptions are Temporal's own settings under the flags.
func clientOptions(c *cli.Context, logger *slog.Logger) (client.Options, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{ConfigFileProfile: c.String(flagProfile)})
	if err != nil {
		return client.Options{}, fmt.Errorf("the Temporal settings: %w", err)
	}
	if v := c.String(flagAddress); v != "" {
		profile.Address = v
	}
	if v := c.String(flagNamespace); v != "" {
		profile.Namespace = v
	}
	if v := c.String(flagCodec); v != "" {
		if profile.Codec == nil {
			profile.Codec = &envconfig.ClientConfigCodec{}
		}
		profile.Codec.Endpoint = v
	}
	if profile.Namespace == "" {
		profile.Namespace = client.DefaultNamespace // the codec is told which one it is
	}
	if codec := profile.Codec; codec != nil && codec.Endpoint != "" {
		if u, err := url.Parse(codec.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return client.Options{}, fmt.Errorf("--%s: %q, want an http or https URL", flagCodec, codec.Endpoint)
		}
	}
	o, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{IncludeRemoteCodec: true})
	if err != nil {
		return client.Options{}, fmt.Errorf("the Temporal settings: %w", err)
	}
	if o.HostPort == "" {
		o.HostPort = client.DefaultHostPort
	}
	if o.DataConverter == nil {
		o.DataConverter = converter.GetDefaultDataConverter()
	}
	o.FailureConverter = temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: o.DataConverter})
	o.Logger = sdklog.NewStructuredLogger(logger)
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(compress))
	return o, nil
}
