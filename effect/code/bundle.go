package code

import (
	"fmt"

	"github.com/evanw/esbuild/pkg/api"
)

// bundle makes a script of TypeScript, which sets the global pwosModule. problem is what is wrong with it, "" where nothing is.
func bundle(source string) (script, problem string) {
	built := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: source, Loader: api.LoaderTS, Sourcefile: "code"},
		Bundle: true, Format: api.FormatIIFE, GlobalName: "pwosModule", Target: api.ES2023, Platform: api.PlatformNeutral,
		TsconfigRaw: "{}", Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone, LogLevel: api.LogLevelSilent, LogLimit: 1,
		AbsWorkingDir: "/",
		Plugins: []api.Plugin{{Name: "nothing", Setup: func(b api.PluginBuild) {
			b.OnResolve(api.OnResolveOptions{Filter: `.*`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				return api.OnResolveResult{}, fmt.Errorf("nothing can be imported: a handler has no modules")
			})
		}}},
	})
	if len(built.Errors) > 0 {
		wrong := built.Errors[0]
		if wrong.Location == nil {
			return "", wrong.Text
		}
		return "", fmt.Sprintf("line %d, column %d: %s", wrong.Location.Line, wrong.Location.Column+1, wrong.Text)
	}
	return string(built.OutputFiles[0].Contents), ""
}
