#include "kubelet/config/settings.h"

#include <cstdio>

#include "lib/component/program.h"

namespace keelson::kubelet {

Result<Settings> LoadSettings(int argc, char** argv, std::optional<int>& exit_code) {
  auto given = ParseCommandLine(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (!given) {
    exit_code = 1;
    std::fprintf(stderr, "Error: failed to parse kubelet flag: %s\n", given.error().message().c_str());
    return given.error();
  }
  if (!given->told.empty()) {
    exit_code = 0;
    std::printf("%s", given->told.c_str());
    return Error(Code::kCancelled, "nothing to run");
  }
  Settings out;
  out.flag_values = FlagValues(*given);
  out.flags = std::move(given->flags);
  KEELSON_ASSIGN_OR_RETURN(out.config, LoadKubeletConfig(out.flags.config, out.flags.config_dir));
  KEELSON_RETURN_IF_ERROR(ApplyFlags(given->config_flags, out.config));
  KEELSON_RETURN_IF_ERROR(component::StartLogging({out.config.logging_format, out.config.logging_verbosity},
                                                  given->without_effect));
  KEELSON_RETURN_IF_ERROR(ValidateKubeletConfig(out.config));
  if (out.flags.cert_dir.empty()) out.flags.cert_dir = out.flags.root_dir + "/pki";
  return out;
}

}  // namespace keelson::kubelet
