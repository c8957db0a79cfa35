// Package contracttest checks that a service, or a caller, keeps the contract of
// package contract, whatever it is made of and whatever language it is written
// in: all that it needs is a function that makes one call.
//
// A service checks itself with [Service]: its manifest, the paging, the answers
// to what it does not have. No tool is called.
//
//	func TestContract(t *testing.T) {
//		// … a Worker that serves "my-tools" behind the Nexus endpoint "my-endpoint" …
//		contracttest.Service(t, contracttest.NexusCall(c, "my-endpoint", "my-tools", 10*time.Second))
//	}
//
// A caller checks itself with [Caller] against the service of [NewService]: each
// of its tools is one row of the tables of results and failures, numbers and
// strings that decoding would change among them.
//
//	func TestContract(t *testing.T) {
//		w.RegisterNexusService(contracttest.NewService("scripted"))
//		// … start the Worker, point the caller at the service …
//		contracttest.Caller(t, func(ctx context.Context, tool string, arguments json.RawMessage) contracttest.Outcome {
//			// … call the tool with exactly these bytes, keep the bytes of the answer …
//		})
//	}
//
// Both need a Temporal server with standalone Nexus operations if they use
// [NexusCall]; for the Temporal CLI before 1.10 that is
//
//	temporal server start-dev --dynamic-config-value nexusoperation.enableStandalone=true
package contracttest
