package cli

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

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
	if codec := profile.Codec; codec != nil && codec.Endpoint != "" {
		if u, err := url.Parse(codec.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return client.Options{}, fmt.Errorf("--%s: %q, want an http or https URL", flagCodec, codec.Endpoint)
		}
	}
	o, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return client.Options{}, fmt.Errorf("the Temporal settings: %w", err)
	}
	if o.HostPort == "" {
		o.HostPort = client.DefaultHostPort
	}
	if o.Namespace == "" {
		o.Namespace = client.DefaultNamespace
	}
	o.DataConverter = converter.GetDefaultDataConverter()
	if codec := profile.Codec; codec != nil && codec.Endpoint != "" {
		o.DataConverter = remoteCodec(*codec, o.Namespace)
	}
	o.FailureConverter = temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: o.DataConverter})
	o.Logger = sdklog.NewStructuredLogger(logger)
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(compress))
	return o, nil
}

// codecTimeout bounds one request to the remote codec, which knows nothing of the
// deadlines of the call that it is for: one that hangs would keep the call's slot.
const codecTimeout = 10 * time.Second

// remoteCodec is the converter that envconfig would make, with a timeout, and for
// the namespace that is worked in, which need not be configured.
func remoteCodec(c envconfig.ClientConfigCodec, namespace string) converter.DataConverter {
	return converter.NewRemoteDataConverter(converter.GetDefaultDataConverter(), converter.RemoteDataConverterOptions{
		Endpoint: c.Endpoint,
		Client:   http.Client{Timeout: codecTimeout},
		ModifyRequest: func(req *http.Request) error {
			req.Header.Set("X-Namespace", namespace)
			if c.Auth != "" {
				req.Header.Set("Authorization", c.Auth)
			}
			return nil
		},
	})
}
