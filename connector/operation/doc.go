// Package operation runs tool calls as standalone Nexus operations of Temporal:
// it starts them under IDs that say who called, waits for them within a budget,
// and finds, describes and cancels them later from any process. Temporal keeps
// every call from the moment that [Client.Start] returns.
package operation
