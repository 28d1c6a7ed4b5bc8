// kube-proxy: Services in the kernel of this node.
#include <CLI/CLI.hpp>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/component/flags.h"
#include "lib/component/logging_options.h"
#include "lib/event/loop.h"
#include "proxy/config/flags.h"
#include "proxy/config/flags_without_effect.h"
#include "proxy/services.h"

namespace {

using keelson::Result;
using keelson::proxy::Config;

Result<int> Run(const CLI::App& app, keelson::proxy::Flags& flags) {
  RETURN_IF_ERROR(keelson::proxy::Complete(app, flags));
  RETURN_IF_ERROR(keelson::k8s::ApplyLogFormat(flags.document.logging.format));
  for (const auto& flag : keelson::proxy::GivenWithoutEffect(app))
    keelson::log::Warn("A flag without effect", {{"flag", flag.name}, {"why", flag.why}});
  if (std::max(flags.verbosity, flags.document.logging.verbosity) >= 2) {
    keelson::log::SetLevel(keelson::log::Level::kDebug);
  }
  if (!flags.write_config_to.empty()) {
    RETURN_IF_ERROR(keelson::WriteFileAtomic(flags.write_config_to, ToYaml(flags.document)));
    keelson::log::Info("Wrote configuration", {{"file", flags.write_config_to}});
    return 0;
  }
  ASSIGN_OR_RETURN(Config config, keelson::proxy::Decide(app, flags));
  if (flags.cleanup) {
    RETURN_IF_ERROR(keelson::proxy::Cleanup(config));
    return 0;
  }
  if (flags.init_only) {
    RETURN_IF_ERROR(keelson::proxy::PrepareHost(config));
    return 0;
  }
  const auto reload = [&]() -> Result<Config> {
    keelson::proxy::Flags again = flags;
    RETURN_IF_ERROR(keelson::proxy::Complete(app, again));
    return keelson::proxy::Decide(app, again);
  };
  return keelson::proxy::RunProxy(config, reload);
}

}  // namespace

int main(int argc, char** argv) {
  keelson::event::LoopsOfProcess loops;
  CLI::App app{"kube-proxy programs Kubernetes Services into this node's kernel"};
  app.set_version_flag("--version", keelson::VersionText());
  keelson::proxy::Flags flags;
  keelson::proxy::AddFlags(app, flags);
  if (std::optional<int> done = keelson::ParseFlags(app, argc, argv)) return *done;
  Result<int> code = Run(app, flags);
  if (code) return *code;
  keelson::log::Error("command failed", {{"err", code.error()}});
  return 1;
}
