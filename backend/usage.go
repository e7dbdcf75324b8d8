package backend

import "deskhand/backend/usage"

type (
	// TallyReport is the sums of what turns took.
	TallyReport = usage.TallyReport
	// TurnSum is what some turns took.
	TurnSum = usage.TurnSum
)
