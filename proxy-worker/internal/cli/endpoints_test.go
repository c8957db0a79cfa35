package cli

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// operator answers as a server does that is not at hand.
type operator struct {
	operatorservice.OperatorServiceClient
	list, create error
	lists        []*nexuspb.EndpointTarget // of each call, the last one stays; nil: none
	asked        int
}

func (o *operator) ListNexusEndpoints(_ context.Context, in *operatorservice.ListNexusEndpointsRequest, _ ...grpc.CallOption) (*operatorservice.ListNexusEndpointsResponse, error) {
	if o.list != nil {
		return nil, o.list
	}
	var target *nexuspb.EndpointTarget
	if len(o.lists) > 0 {
		target = o.lists[min(o.asked, len(o.lists)-1)]
	}
	o.asked++
	if target == nil {
		return &operatorservice.ListNexusEndpointsResponse{}, nil
	}
	return &operatorservice.ListNexusEndpointsResponse{Endpoints: []*nexuspb.Endpoint{{Spec: &nexuspb.EndpointSpec{Name: in.GetName(), Target: target}}}}, nil
}

func (o *operator) CreateNexusEndpoint(context.Context, *operatorservice.CreateNexusEndpointRequest, ...grpc.CallOption) (*operatorservice.CreateNexusEndpointResponse, error) {
	return &operatorservice.CreateNexusEndpointResponse{}, o.create
}

func TestEndpointsThatCannotBeMade(t *testing.T) {
	t.Parallel()

	here := &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{Worker: &nexuspb.EndpointTarget_Worker{Namespace: "n", TaskQueue: "q"}}}
	outside := &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_External_{External: &nexuspb.EndpointTarget_External{Url: "https://h"}}}
	denied := serviceerror.NewPermissionDenied("no", "")
	for name, tc := range map[string]struct {
		operator operator
		want     string // "": no error
	}{
		"there":             {operator: operator{lists: []*nexuspb.EndpointTarget{here}, create: denied}},
		"made":              {},
		"race, ours":        {operator: operator{lists: []*nexuspb.EndpointTarget{nil, here}, create: serviceerror.NewAlreadyExists("yes")}},
		"race, not ours":    {operator: operator{lists: []*nexuspb.EndpointTarget{nil, outside}, create: serviceerror.NewAlreadyExists("yes")}, want: "leads outside this Temporal; it is not changed"},
		"race, not seen":    {operator: operator{create: serviceerror.NewAlreadyExists("yes")}, want: `--ensure-endpoints: create the Nexus endpoint "e": yes`},
		"outside":           {operator: operator{lists: []*nexuspb.EndpointTarget{outside}}, want: "leads outside this Temporal; it is not changed"},
		"list denied":       {operator: operator{list: denied}, want: `Temporal does not let this client look up the Nexus endpoint "e" (no)`},
		"create denied":     {operator: operator{create: denied}, want: "temporal operator nexus endpoint create --name e --target-namespace n --target-task-queue q) and leave the flag out"},
		"not implemented":   {operator: operator{create: serviceerror.NewUnimplemented("never")}, want: "does not let this client create"},
		"away while listed": {operator: operator{list: serviceerror.NewUnavailable("away")}, want: `look up the Nexus endpoint "e": away`},
	} {
		err := ensureEndpoint(t.Context(), &tc.operator, endpoint{"e", "n", "q"}, quiet())
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
		require.Equal(t, name == "away while listed", isAway(err), name)
	}
}
