#include <CLI/CLI.hpp>
#include <sstream>

#include "kubelet/config/fields.h"
#include "kubelet/config/flag_values.h"
#include "kubelet/config/flags_without_effect.h"
#include "kubelet/config/settings.h"
#include "lib/base/text.h"
#include "lib/base/version.h"
#include "lib/component/flags.h"

namespace keelson::kubelet {

namespace {

template <typename T>
using At = T KubeletFlags::*;

struct OwnFlag {
  std::string_view name;
  std::variant<At<bool>, At<int32_t>, At<std::string>, At<Duration>, At<StringMap>> place;
  std::string_view help;
};

using F = KubeletFlags;
const OwnFlag kOwnFlags[] = {
    {"kubeconfig", &F::kubeconfig,
     "Kubeconfig file: where the API server is, and who we are. None: static pods only"},
    {"bootstrap-kubeconfig", &F::bootstrap_kubeconfig,
     "Kubeconfig file to ask for a client certificate with, if there is no --kubeconfig yet"},
    {"config", &F::config, "KubeletConfiguration file"},
    {"config-dir", &F::config_dir, "Directory of *.conf files that are merged over --config in order"},
    {"hostname-override", &F::hostname_override, "Name of the node instead of the host's name"},
    {"node-ip", &F::node_ip, "Address of the node, or one of each family separated by a comma"},
    {"root-dir", &F::root_dir, "Directory for volumes and other files of pods"},
    {"cert-dir", &F::cert_dir, "Directory of the kubelet's own certificates; default: pki in --root-dir"},
    {"node-labels", &F::node_labels, "Labels to register the node with: a=b,c=d"},
    {"cloud-provider", &F::cloud_provider,
     "Where \"external\", the node is not used before a cloud controller has seen it"},
    {"image-credential-provider-config", &F::image_credential_provider_config,
     "CredentialProviderConfig file, or a directory of them"},
    {"image-credential-provider-bin-dir", &F::image_credential_provider_bin_dir,
     "Directory of credential provider plugins"},
    {"lock-file", &F::lock_file, "File that only one kubelet may hold a lock on"},
    {"exit-on-lock-contention", &F::exit_on_lock_contention, "Exit when another asks for the lock file"},
    {"runtime-cgroups", &F::runtime_cgroups, "Cgroup of the container runtime"},
    {"pod-infra-container-image", &F::pod_infra_container_image,
     "Image that is never removed, if the runtime does not say which"},
    {"experimental-allocatable-ignore-eviction", &F::allocatable_ignores_eviction,
     "Do not take hard eviction thresholds off what pods may have"},
    {"minimum-container-ttl-duration", &F::minimum_container_ttl,
     "Least age of a dead container that is removed"},
    {"maximum-dead-containers-per-container", &F::maximum_dead_containers_per_container,
     "Old runs that are kept of each container"},
    {"maximum-dead-containers", &F::maximum_dead_containers,
     "Dead containers that are kept in all; negative: any number"},
};

char SeparatorOf(const Field& field) {
  return field.flag == "eviction-hard" || field.flag == "eviction-soft" ? '<' : '=';
}

Error InvalidArgument(std::string_view name, const std::string& value, const Error& why) {
  return Error(Code::kBadRequest, "invalid argument \"" + value + "\" for \"--" + std::string(name) +
                                      "\" flag: " + why.message());
}

Result<> SetConfig(const Field& field, const std::string& value, bool first, KubeletConfig& config) {
  return std::visit([&](auto place) { return Parser(first, SeparatorOf(field)).Parse(value, config.*place); },
                    field.place);
}

std::string PrintConfig(const Field& field, const KubeletConfig& config) {
  return std::visit([&](auto place) { return Printer(SeparatorOf(field)).Print(config.*place); },
                    field.place);
}

std::string PrintOwn(const OwnFlag& flag, const KubeletFlags& flags) {
  return std::visit([&](auto place) { return Printer('=').Print(flags.*place); }, flag.place);
}

const char* TypeName(bool) { return ""; }
const char* TypeName(int32_t) { return "INT"; }
const char* TypeName(int64_t) { return "INT"; }
const char* TypeName(double) { return "FLOAT"; }
const char* TypeName(Duration) { return "DURATION"; }
template <typename T>
const char* TypeName(const T&) {
  return "TEXT";
}

struct FlagText {
  std::string name, type, standard, help;
  bool is_switch = false;
};

// `set` is called for each time that the flag is given, in order.
CLI::Option* Add(CLI::App& app, const FlagText& flag, std::function<Result<>(const std::string&)> set) {
  const auto take = [name = flag.name, set = std::move(set)](const std::string& value) {
    if (auto done = set(value); !done) {
      throw CLI::ValidationError(InvalidArgument(name, value, done.error()).message());
    }
  };
  const std::string names = (flag.name.size() == 1 ? "-" + flag.name + "," : "") + "--" + flag.name;
  CLI::Option* option = nullptr;
  if (flag.is_switch) {
    option = app.add_flag_function(
        names, [take](int64_t on) { take(on > 0 ? "true" : "false"); }, flag.help);
  } else {
    option = app.add_option_function<std::string>(names, take, flag.help)->type_name(flag.type);
  }
  return option->default_str(flag.standard)->trigger_on_parse();
}

void AddOwnFlags(CLI::App& app, CommandLine& out) {
  for (const OwnFlag& flag : kOwnFlags) {
    FlagText text{std::string(flag.name), "", PrintOwn(flag, KubeletFlags{}), std::string(flag.help)};
    std::visit([&](auto place) { text.type = TypeName(out.flags.*place); }, flag.place);
    text.is_switch = std::holds_alternative<At<bool>>(flag.place);
    Add(app, text, [&flag, &out](const std::string& value) {
      return std::visit([&](auto place) { return Parser(false, '=').Parse(value, out.flags.*place); },
                        flag.place);
    });
  }
}

void AddConfigFlags(CLI::App& app, CommandLine& out) {
  const KubeletConfig standard;
  for (const Field& field : Fields()) {
    if (field.flag.empty()) continue;
    FlagText text{std::string(field.flag), "", PrintConfig(field, standard),
                  "Sets " + std::string(field.path)};
    std::visit([&](auto place) { text.type = TypeName(standard.*place); }, field.place);
    text.is_switch = std::holds_alternative<In<bool>>(field.place);
    Add(app, text, [&field, &out](const std::string& value) -> Result<> {
      KubeletConfig scratch;  // a bad value is an error before any file is read
      KEELSON_RETURN_IF_ERROR(SetConfig(field, value, true, scratch));
      out.config_flags.emplace_back(field.flag, value);
      return {};
    })->group("Flags that set a field of KubeletConfiguration, and win over the files");
  }
}

// All flags. CLI11 compares each new one with all others, so they are added once.
struct Flags {
  CLI::App app{"Node agent: runs the Pods that the API server has bound to this node, and static ones",
               "kubelet"};
  CommandLine line;

  Flags() {
    app.set_version_flag("--version", VersionText());
    app.failure_message([](const CLI::App*, const CLI::Error& error) { return std::string(error.what()); });
    AddOwnFlags(app, line);
    AddConfigFlags(app, line);
    component::AddFlagsWithoutEffect(app, FlagsWithoutEffect());
  }
};

Flags& AllFlags() {
  static Flags flags;
  return flags;
}

}  // namespace

Result<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  auto& [app, line] = AllFlags();
  line = {};
  std::ostringstream told, error;
  const std::optional<int> code = ParseFlags(app, arguments, told, error);
  if (code && *code != 0) return Error(Code::kBadRequest, error.str());
  line.told = told.str();
  line.without_effect = component::GivenWithoutEffect(app, FlagsWithoutEffect());
  return line;
}

Result<> ApplyFlags(const std::vector<std::pair<std::string, std::string>>& flags, KubeletConfig& config) {
  std::vector<std::string_view> seen;
  for (const auto& [name, value] : flags) {
    for (const Field& field : Fields()) {
      if (field.flag != name) continue;
      if (auto set = SetConfig(field, value, !Contains(seen, name), config); !set) {
        return InvalidArgument(name, value, set.error());
      }
    }
    seen.push_back(name);
  }
  return {};
}

StringMap FlagValues(const CommandLine& given) {
  StringMap out;
  for (const OwnFlag& flag : kOwnFlags) out[std::string(flag.name)] = PrintOwn(flag, given.flags);
  KubeletConfig config;
  (void)ApplyFlags(given.config_flags, config);  // they have been read once
  for (const Field& field : Fields()) {
    if (!field.flag.empty()) out[std::string(field.flag)] = PrintConfig(field, config);
  }
  return out;
}

std::string FlagUsage() { return AllFlags().app.help(); }

}  // namespace keelson::kubelet
