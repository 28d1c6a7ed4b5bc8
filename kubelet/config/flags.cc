#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "kubelet/config/fields.h"
#include "kubelet/config/flags_without_effect.h"
#include "kubelet/config/settings.h"
#include "lib/api/duration.h"

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
     "external: the node is not used before a cloud controller has seen it"},
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

template <typename List>
bool Contains(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

const Field* FindConfigFlag(std::string_view name) {
  for (const Field& field : Fields())
    if (!field.flag.empty() && field.flag == name) return &field;
  return nullptr;
}
const OwnFlag* FindOwnFlag(std::string_view name) {
  for (const OwnFlag& flag : kOwnFlags)
    if (flag.name == name) return &flag;
  return nullptr;
}

std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) out.push_back(part);
  return out;
}

Error Malformed(const std::string& pair) {
  return Error(Code::kBadRequest, "malformed pair, expect string=string, got \"" + pair + "\"");
}

// What a flag's text says. A flag that is given again adds to lists and maps.
class Parser {
 public:
  Parser(bool first, char separator) : first_(first), separator_(separator) {}

  Result<> Parse(const std::string& text, bool& out) const {
    static const std::string kTrue[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const std::string kFalse[] = {"0", "f", "F", "false", "FALSE", "False"};
    if (!Contains(kTrue, text) && !Contains(kFalse, text))
      return Error(Code::kBadRequest, "strconv.ParseBool: parsing \"" + text + "\": invalid syntax");
    out = Contains(kTrue, text);
    return {};
  }
  Result<> Parse(const std::string& text, int32_t& out) const { return Number(text, "ParseInt", out); }
  Result<> Parse(const std::string& text, int64_t& out) const { return Number(text, "ParseInt", out); }
  Result<> Parse(const std::string& text, double& out) const {
    char* end = nullptr;
    out = std::strtod(text.c_str(), &end);
    if (text.empty() || *end)
      return Error(Code::kBadRequest, "strconv.ParseFloat: parsing \"" + text + "\": invalid syntax");
    return {};
  }
  Result<> Parse(const std::string& text, std::string& out) const {
    out = text;
    return {};
  }
  Result<> Parse(const std::string& text, Duration& out) const {
    ASSIGN_OR_RETURN(int64_t nanos, api::ParseGoDuration(text));
    out = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(nanos));
    return {};
  }
  Result<> Parse(const std::string& text, std::vector<std::string>& out) const {
    if (first_) out.clear();
    for (std::string& part : Split(text, ',')) out.push_back(std::move(part));
    return {};
  }
  Result<> Parse(const std::string& text, StringMap& out) const {
    if (first_) out.clear();
    return Pairs(text, separator_, [&](const std::string& key, const std::string& value) -> Result<> {
      out[key] = value;
      return {};
    });
  }
  // Settings of the file stay, one by one.
  Result<> Parse(const std::string& text, std::map<std::string, bool>& out) const {
    return Pairs(text, '=', [&](const std::string& key, const std::string& value) -> Result<> {
      bool on = false;
      if (!Parse(value, on))
        return Error(Code::kBadRequest, "invalid value of " + key + "=" + value +
                                            ", err: strconv.ParseBool: parsing \"" + value +
                                            "\": invalid syntax");
      out[key] = on;
      return {};
    });
  }
  Result<> Parse(const std::string& text, std::map<std::string, std::vector<std::string>>& out) const {
    if (first_) out.clear();
    return Pairs(text, ':', [&](const std::string& key, const std::string& value) -> Result<> {
      out[key].push_back(value);
      return {};
    });
  }
  Result<> Parse(const std::string&, std::vector<ShutdownPeriod>&) const { return {}; }  // has no flag
  Result<> Parse(const std::string& text, std::vector<NodeTaint>& out) const {
    if (first_) out.clear();
    for (const std::string& part : Split(text, ',')) {
      size_t colon = part.rfind(':');
      std::string key = part.substr(0, colon);
      NodeTaint taint;
      if (colon != std::string::npos) taint.effect = part.substr(colon + 1);
      taint.key = key.substr(0, key.find('='));
      if (key.find('=') != std::string::npos) taint.value = key.substr(key.find('=') + 1);
      if (taint.key.empty() || taint.effect.empty())
        return Error(Code::kBadRequest, "invalid taint spec: " + part);
      out.push_back(std::move(taint));
    }
    return {};
  }
  // 0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi
  Result<> Parse(const std::string& text, std::vector<MemoryReservation>& out) const {
    if (first_) out.clear();
    for (const std::string& part : Split(text, ';')) {
      size_t colon = part.find(':');
      MemoryReservation one;
      if (colon == std::string::npos || !Parse(part.substr(0, colon), one.numa_node))
        return Error(Code::kBadRequest,
                     "the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type="
                     "quantity...], got " +
                         part);
      RETURN_IF_ERROR(Pairs(part.substr(colon + 1), '=',
                            [&](const std::string& key, const std::string& value) -> Result<> {
                              one.limits[key] = value;
                              return {};
                            }));
      out.push_back(std::move(one));
    }
    return {};
  }

 private:
  template <typename T>
  static Result<> Number(const std::string& text, const char* function, T& out) {
    const char* begin = text.data() + (!text.empty() && text[0] == '+' ? 1 : 0);
    auto [end, problem] = std::from_chars(begin, text.data() + text.size(), out);
    if (problem == std::errc::result_out_of_range)
      return Error(Code::kBadRequest,
                   std::string("strconv.") + function + ": parsing \"" + text + "\": value out of range");
    if (problem != std::errc() || end != text.data() + text.size())
      return Error(Code::kBadRequest,
                   std::string("strconv.") + function + ": parsing \"" + text + "\": invalid syntax");
    return {};
  }
  template <typename Each>
  static Result<> Pairs(const std::string& text, char separator, Each each) {
    for (const std::string& pair : Split(text, ',')) {
      if (pair.empty()) continue;
      size_t at = pair.find(separator);
      if (at == std::string::npos || at == 0) return Malformed(pair);
      auto trim = [](std::string part) {
        part.erase(0, part.find_first_not_of(' '));
        part.erase(part.find_last_not_of(' ') + 1);
        return part;
      };
      RETURN_IF_ERROR(each(trim(pair.substr(0, at)), trim(pair.substr(at + 1))));
    }
    return {};
  }

  const bool first_;
  const char separator_;
};

// The other way round: what a flag's value is shown as.
class Printer {
 public:
  explicit Printer(char separator) : separator_(separator) {}

  std::string Print(bool value) const { return value ? "true" : "false"; }
  std::string Print(int32_t value) const { return std::to_string(value); }
  std::string Print(int64_t value) const { return std::to_string(value); }
  std::string Print(double value) const { return fmt::format("{}", value); }
  std::string Print(const std::string& value) const { return value; }
  std::string Print(Duration value) const {
    return api::FormatGoDuration(std::chrono::nanoseconds(value).count());
  }
  std::string Print(const std::vector<std::string>& value) const {
    return fmt::format("[{}]", fmt::join(value, ","));
  }
  template <typename T>
  std::string Print(const std::map<std::string, T>& value) const {
    std::string out;
    for (const auto& [name, item] : value) out += (out.empty() ? "" : ",") + name + separator_ + Print(item);
    return out;
  }
  // A header's values may be credentials.
  std::string Print(const std::map<std::string, std::vector<std::string>>& value) const {
    return value.empty() ? "" : "CLASSIFIED";
  }
  std::string Print(const std::vector<ShutdownPeriod>&) const { return ""; }  // has no flag
  std::string Print(const std::vector<NodeTaint>& value) const {
    std::string out;
    for (const NodeTaint& taint : value)
      out += (out.empty() ? "" : ",") + taint.key + "=" + taint.value + ":" + taint.effect;
    return out;
  }
  std::string Print(const std::vector<MemoryReservation>& value) const {
    std::string out;
    for (const MemoryReservation& item : value)
      out += (out.empty() ? "" : ";") + std::to_string(item.numa_node) + ":" + Print(item.limits);
    return out;
  }

 private:
  const char separator_;
};

char SeparatorOf(const Field& field) {
  return field.flag == "eviction-hard" || field.flag == "eviction-soft" ? '<' : '=';
}

bool IsSwitch(const std::string& name) {
  if (name == "help" || name == "version") return true;
  if (const Field* field = FindConfigFlag(name)) return std::holds_alternative<In<bool>>(field->place);
  if (const OwnFlag* flag = FindOwnFlag(name)) return std::holds_alternative<At<bool>>(flag->place);
  const FlagWithoutEffect* idle = FindFlagWithoutEffect(name);
  return idle && idle->form == FlagWithoutEffect::Form::kSwitch;
}

Error InvalidArgument(const std::string& name, const std::string& value, const Error& why) {
  return Error(Code::kBadRequest,
               "invalid argument \"" + value + "\" for \"--" + name + "\" flag: " + why.message());
}

Result<> SetConfig(const Field& field, const std::string& value, bool first, KubeletConfig& config) {
  return std::visit([&](auto place) { return Parser(first, SeparatorOf(field)).Parse(value, config.*place); },
                    field.place);
}

// Of a flag that is checked and no more.
Result<> CheckValue(FlagWithoutEffect::Form form, const std::string& value) {
  const Parser parser(true, '=');
  bool on = false;
  int64_t number = 0;
  Duration duration{0};
  switch (form) {
    case FlagWithoutEffect::Form::kSwitch:
      return parser.Parse(value, on);
    case FlagWithoutEffect::Form::kNumber:
      return parser.Parse(value, number);
    case FlagWithoutEffect::Form::kDuration:
      return parser.Parse(value, duration);
    case FlagWithoutEffect::Form::kText:
      break;
  }
  return {};
}

Result<> SetFlag(const std::string& name, const std::string& value, CommandLine& out) {
  const FlagWithoutEffect* idle = FindFlagWithoutEffect(name);
  if (idle && !Contains(out.without_effect, idle->name)) out.without_effect.push_back(name);
  if (name == "help" || name == "version") {
    (name == "help" ? out.help : out.version) = value != "false";
    return {};
  }
  if (const OwnFlag* flag = FindOwnFlag(name)) {
    auto set = std::visit([&](auto place) { return Parser(false, '=').Parse(value, out.flags.*place); },
                          flag->place);
    if (!set) return InvalidArgument(name, value, set.error());
    return {};
  }
  if (const Field* field = FindConfigFlag(name)) {
    KubeletConfig scratch;  // that the value can be read is told before any file is
    if (auto set = SetConfig(*field, value, true, scratch); !set)
      return InvalidArgument(name, value, set.error());
    out.config_flags.emplace_back(name, value);
    return {};
  }
  if (!idle) return Error(Code::kBadRequest, "unknown flag: --" + name);
  if (auto fine = CheckValue(idle->form, value); !fine) return InvalidArgument(name, value, fine.error());
  return {};
}

}  // namespace

Result<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& text = arguments[i];
    if (text.size() < 2 || text[0] != '-')
      return Error(Code::kBadRequest, "unknown command \"" + text + "\"");
    const size_t dashes = text[1] == '-' ? 2 : 1;
    size_t equals = text.find('=');
    std::string name = text.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == "h") name = "help";
    if (dashes == 1 && name.size() > 1 && name != "help")
      return Error(Code::kBadRequest, "unknown shorthand flag: '" + name.substr(0, 1) + "' in " + text);
    std::string value;
    if (equals != std::string::npos) {
      value = text.substr(equals + 1);
    } else if (IsSwitch(name)) {
      value = "true";
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else if (FindOwnFlag(name) || FindConfigFlag(name) || FindFlagWithoutEffect(name)) {
      return Error(Code::kBadRequest, "flag needs an argument: --" + name);
    }
    RETURN_IF_ERROR(SetFlag(name, value, out));
  }
  return out;
}

Result<> ApplyFlags(const std::vector<std::pair<std::string, std::string>>& flags, KubeletConfig& config) {
  std::vector<std::string_view> seen;
  for (const auto& [name, value] : flags) {
    const Field* field = FindConfigFlag(name);
    if (auto set = SetConfig(*field, value, !Contains(seen, name), config); !set)
      return InvalidArgument(name, value, set.error());
    seen.push_back(name);
  }
  return {};
}

StringMap FlagValues(const CommandLine& given) {
  StringMap out;
  for (const OwnFlag& flag : kOwnFlags)
    out[std::string(flag.name)] =
        std::visit([&](auto place) { return Printer('=').Print(given.flags.*place); }, flag.place);
  KubeletConfig config;
  (void)ApplyFlags(given.config_flags, config);  // they have been read once
  for (const Field& field : Fields())
    if (!field.flag.empty())
      out[std::string(field.flag)] = std::visit(
          [&](auto place) { return Printer(SeparatorOf(field)).Print(config.*place); }, field.place);
  return out;
}

std::string FlagUsage() {
  std::string out =
      "Node agent: runs the Pods that the API server has bound to this node, and static ones.\n\nUsage:\n  "
      "kubelet [flags]\n\nFlags:\n";
  for (const OwnFlag& flag : kOwnFlags)
    out += "      --" + std::string(flag.name) + "\n            " + std::string(flag.help) + "\n";
  out += "\nFlags that set a field of KubeletConfiguration, and win over the files:\n";
  for (const Field& field : Fields())
    if (!field.flag.empty())
      out += "      --" + std::string(field.flag) + "  (" + std::string(field.path) + ")\n";
  out += "\nFlags of upstream's that change nothing here:\n";
  for (const FlagWithoutEffect& flag : FlagsWithoutEffect())
    out += "      --" + std::string(flag.name) + "  (" + std::string(flag.why) + ")\n";
  return out;
}

}  // namespace keelson::kubelet
