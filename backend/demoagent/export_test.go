package demoagent

// RunVariable makes the test binary a process that the tests need.
const RunVariable = "DEMOAGENT_TEST_RUN"

// What agenttest has. TestMain sets the variables, since agenttest imports this package.
//
//nolint:gochecknoglobals // TestMain sets them once
var (
	Additions func() Config
	JunkLines func(session string) []string
	HugeText  func() string
)
