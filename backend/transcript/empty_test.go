package transcript

import "testing"

// TestChunksOfNothingMakeNoEntry: Qwen sends them around its tool calls, and each would be an entry without a word.
func TestChunksOfNothingMakeNoEntry(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	s.chunk("agent_thought_chunk", "", "")
	s.chunk("agent_message_chunk", "", "")
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Read","status":"completed"}`)
	s.chunk("agent_message_chunk", "", "")
	s.chunk("agent_message_chunk", "", "Done")
	s.chunk("agent_message_chunk", "", "")
	s.chunk("agent_message_chunk", "", ".")
	s.want("user: go", "tool: 1 Read completed", "agent: Done.")
}
