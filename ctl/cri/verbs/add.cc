#include "ctl/cri/verbs/add.h"

#include "ctl/cri/verbs/verb.h"
#include "ctl/cri_verbs.h"
#include "lib/api/duration.h"

namespace keelson::ctl {
namespace {

constexpr char kGroup[] = "Of crictl's verbs";

void AddFlags(CLI::App& app, CriFlags& flags) {
  app.add_option_function<std::string>(
         "-c,--config", [&flags](const std::string& path) { flags.config = path; },
         "crictl's configuration file; default: $CRI_CONFIG_FILE, /etc/crictl.yaml")
      ->group(kGroup);
  app.add_option_function<std::string>(
         "-r,--runtime-endpoint",
         [&flags](const std::string& endpoint) { flags.runtime_endpoint = endpoint; },
         "Socket of the container runtime; default: $CONTAINER_RUNTIME_ENDPOINT, the file, well-known "
         "sockets")
      ->group(kGroup);
  app.add_option_function<std::string>(
         "-i,--image-endpoint", [&flags](const std::string& endpoint) { flags.image_endpoint = endpoint; },
         "Socket of the image service; default: $IMAGE_SERVICE_ENDPOINT, the file, the runtime's")
      ->group(kGroup);
  app.add_option_function<std::string>(
         "-t,--timeout",
         [&flags](const std::string& text) {
           const Result<int64_t> nanos = api::ParseGoDuration(text);
           if (!nanos) throw CLI::ValidationError("--timeout: " + nanos.error().message());
           flags.timeout = std::chrono::nanoseconds(*nanos);
         },
         "How long to wait for the runtime, and for each of its answers")
      ->type_name("DURATION")
      ->default_str("2s")
      ->group(kGroup);
  app.add_flag_function(
         "-D,--debug", [&flags](int64_t count) { flags.debug = count > 0; },
         "Print the requests to the runtime")
      ->group(kGroup);
}

}  // namespace

std::function<Result<>()> AddCriVerbs(CLI::App& app, Run& chosen) {
  auto flags = std::make_shared<CriFlags>();
  AddFlags(app, *flags);
  // In the order of the help: verbs that look, that change, and that stay.
  const CriVerbs verbs{app, chosen, flags};
  for (const auto add : {AddCriPods, AddCriPs, AddCriImages, AddCriInspect, AddCriStats, AddCriInfo,
                         AddCriPull, AddCriCreate, AddCriStop, AddCriRemove, AddCriRemoveImages, AddCriUpdate,
                         AddCriLogs, AddCriExec, AddCriAttach, AddCriPortForward, AddCriEvents}) {
    add(verbs);
  }
  return [&app, flags]() -> Result<> {
    if (!flags->given()) return {};
    for (const CLI::App* verb : app.get_subcommands()) {
      if (verb->get_group() == kCriGroup) continue;
      return Error(Code::kInvalid,
                   "flags of the container runtime have no effect on the verb " + verb->get_name());
    }
    return {};
  };
}

}  // namespace keelson::ctl
