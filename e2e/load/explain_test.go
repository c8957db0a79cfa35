package load_test

import (
	"context"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"go.temporal.io/sdk/client"
)

// explain logs, of a test that failed, what is known of the calls that have not begun.
func explain(t *testing.T, server *harness.Temporal, s *service, pending []*harness.Pending, from int) {
	t.Helper()
	if !t.Failed() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, call := range pending {
		if s.ran[from+i] > 0 {
			continue
		}
		answer, _ := call.Find(0, harness.IsAnswer(call.ID))
		told, _ := call.Find(0, harness.IsNotification("notifications/progress"))
		id := operationID.FindString(string(told.Raw))
		if id == "" {
			t.Logf("call %d has no ID; its answer: %s", from+i, answer.Raw)
			continue
		}
		d, err := server.Client(t).GetNexusOperationHandle(client.GetNexusOperationHandleOptions{OperationID: id}).
			Describe(context.Background(), client.DescribeNexusOperationOptions{})
		if err != nil {
			t.Logf("call %d is %s: %v", from+i, id, err)
			continue
		}
		t.Logf("call %d is %s: %v; its last attempt: %v", from+i, id, d.RawInfo, d.GetLastAttemptFailure())
	}
}
