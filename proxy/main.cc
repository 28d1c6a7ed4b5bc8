// kube-proxy: Services in the kernel of this node.
#include <CLI/CLI.hpp>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/component/program.h"
#include "lib/event/loop.h"
#include "proxy/config/flags.h"
#include "proxy/config/flags_without_effect.h"
#include "proxy/services.h"

namespace {

using keelson::Result;
using keelson::proxy::Config;
namespace component = keelson::component;

Result<int> Run(const CLI::App& app, keelson::proxy::Flags& flags) {
  KEELSON_RETURN_IF_ERROR(keelson::proxy::Complete(app, flags));
  const auto& logging = flags.document.logging;
  KEELSON_RETURN_IF_ERROR(
      component::StartLogging({logging.format, std::max(flags.verbosity, logging.verbosity)},
                              component::GivenWithoutEffect(app, keelson::proxy::FlagsWithoutEffect())));
  if (!flags.write_config_to.empty()) {
    KEELSON_RETURN_IF_ERROR(keelson::WriteFileAtomic(flags.write_config_to, ToYaml(flags.document)));
    keelson::log::Info("Wrote configuration", {{"file", flags.write_config_to}});
    return 0;
  }
  KEELSON_ASSIGN_OR_RETURN(Config config, keelson::proxy::Decide(app, flags));
  if (flags.cleanup) {
    KEELSON_RETURN_IF_ERROR(keelson::proxy::Cleanup(config));
    return 0;
  }
  if (flags.init_only) {
    KEELSON_RETURN_IF_ERROR(keelson::proxy::PrepareHost(config));
    return 0;
  }
  const auto reload = [&]() -> Result<Config> {
    keelson::proxy::Flags again = flags;
    KEELSON_RETURN_IF_ERROR(keelson::proxy::Complete(app, again));
    return keelson::proxy::Decide(app, again);
  };
  return keelson::proxy::RunProxy(config, reload);
}

}  // namespace

int main(int argc, char** argv) {
  keelson::BlockSignals();
  keelson::event::LoopsOfProcess loops;
  CLI::App app{"kube-proxy programs Kubernetes Services into this node's kernel", "kube-proxy"};
  keelson::proxy::Flags flags;
  keelson::proxy::AddFlags(app, flags);
  if (std::optional<int> done = component::ParseProgram(app, argc, argv)) return *done;
  return component::ExitCode(Run(app, flags), "command failed");
}
