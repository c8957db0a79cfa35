package loop

import (
	"context"
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/temporal"
)

// Scripted is a model without a mind: it says one line for each turn. It needs no
// key, so that tests and the demo can have an agent.
type Scripted []func(Conversation) Reply

// Reply implements [Model].
func (s Scripted) Reply(_ context.Context, c Conversation) (Reply, error) {
	if len(c.Turns) >= len(s) {
		return Reply{}, temporal.NewNonRetryableApplicationError("the script is over", "Model", nil)
	}
	reply := s[len(c.Turns)](c)
	for i := range reply.Calls {
		reply.Calls[i].ID = fmt.Sprintf("call_%d_%d", len(c.Turns), i)
	}
	return reply, nil
}

// Rehearsed is what the scripted model says to any question, with the tools of
// lucky-number: four calls at once, one of which takes its time, one that uses
// what another returned, and one that destroys something.
var Rehearsed = Scripted{
	func(Conversation) Reply {
		return Reply{Text: "I look at everything at once.", Calls: []Call{
			{Tool: "lucky_number", Arguments: json.RawMessage(`{"name":"Ada"}`)},
			{Tool: "lucky_number", Arguments: json.RawMessage(`{"name":"Grace"}`)},
			{Tool: "brew_report", Arguments: json.RawMessage(`{"topic":"the harvest","seconds":8}`)},
			{Tool: "create_topic_list", Arguments: json.RawMessage(`{}`)},
		}}
	},
	func(c Conversation) Reply {
		return Reply{Calls: []Call{{Tool: "remember_topic", Arguments: listArguments(c, "the harvest")}}}
	},
	func(c Conversation) Reply {
		return Reply{Text: "The list is not needed any more.", Calls: []Call{
			{Tool: "delete_topic_list", Arguments: listArguments(c, "")},
		}}
	},
	func(c Conversation) Reply {
		first, last := c.Turns[0].Outputs, c.Turns[2].Outputs
		return Reply{Text: fmt.Sprintf("Ada: %s\nGrace: %s\nReport: %s\nThe list: %s",
			first[0].Text, first[1].Text, first[2].Text, last[0].Text)}
	},
}

// listArguments are arguments with the handle that create_topic_list returned.
func listArguments(c Conversation, topic string) json.RawMessage {
	var arguments struct {
		Handle string `json:"handle"`
		Topic  string `json:"topic,omitempty"`
	}
	// Without a handle, the tool says what is wrong.
	_ = json.Unmarshal([]byte(c.Turns[0].Outputs[3].Text), &arguments)
	arguments.Topic = topic
	data, _ := json.Marshal(arguments)
	return data
}
