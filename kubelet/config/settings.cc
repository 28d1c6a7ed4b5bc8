#include "kubelet/config/settings.h"

#include <cstdio>

#include "kubelet/config/flags_without_effect.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/component/logging_options.h"

namespace keelson::kubelet {

Result<Settings> LoadSettings(int argc, char** argv, std::optional<int>& exit_code) {
  auto given = ParseCommandLine(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (!given) {
    exit_code = 1;
    std::fprintf(stderr, "Error: failed to parse kubelet flag: %s\n", given.error().message().c_str());
    return given.error();
  }
  if (given->help || given->version) {
    exit_code = 0;
    std::printf("%s", given->version ? (VersionText() + "\n").c_str() : FlagUsage().c_str());
    return Error(Code::kCancelled, "nothing to run");
  }
  Settings out;
  out.flag_values = FlagValues(*given);
  out.flags = std::move(given->flags);
  ASSIGN_OR_RETURN(out.config, LoadKubeletConfig(out.flags.config, out.flags.config_dir));
  RETURN_IF_ERROR(ApplyFlags(given->config_flags, out.config));
  RETURN_IF_ERROR(k8s::ApplyLogFormat(out.config.logging_format));
  for (const std::string& name : given->without_effect)
    log::Warn("A flag without effect", {{"flag", "--" + name}, {"why", FindFlagWithoutEffect(name)->why}});
  RETURN_IF_ERROR(ValidateKubeletConfig(out.config));
  if (out.flags.cert_dir.empty()) out.flags.cert_dir = out.flags.root_dir + "/pki";
  return out;
}

}  // namespace keelson::kubelet
