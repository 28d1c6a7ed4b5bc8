#include "cni/lib/plugin.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>

#include <boost/json/serialize.hpp>

#include "cni/lib/json.h"
#include "lib/base/file.h"

namespace keelson::cni {
namespace {

using boost::json::object;

// Letters and digits, and after the first also _ . -: the characters of container ids and network names.
bool IsIdentifier(std::string_view text) {
  if (text.empty() || !std::isalnum(static_cast<unsigned char>(text[0]))) return false;
  for (char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-') return false;
  }
  return true;
}

bool IsInterfaceName(std::string_view name) {
  if (name.empty() || name.size() > 15 || name == "." || name == "..") return false;
  for (char c : name) {
    if (c == '/' || c == ':' || std::isspace(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

CniError EnvironmentError(std::string message) { return {kInvalidEnvironment, std::move(message), ""}; }

Outcome<std::map<std::string, std::string>> ParseArgs(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    auto end = text.find(';');
    std::string_view pair = text.substr(0, end);
    auto equals = pair.find('=');
    if (equals == std::string_view::npos) {
      return EnvironmentError("CNI_ARGS: invalid pair \"" + std::string(pair) + "\"");
    }
    out[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return out;
}

// The variables that a command needs (CNI spec 1.1, section 2).
Outcome<> ReadEnvironment(const Environment& environment, Request& request) {
  auto get = [&](const char* name) {
    auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  request.command = get("CNI_COMMAND");
  request.container_id = get("CNI_CONTAINERID");
  request.netns = get("CNI_NETNS");
  request.ifname = get("CNI_IFNAME");
  request.path = get("CNI_PATH");
  const std::string& c = request.command;
  if (c != "ADD" && c != "DEL" && c != "CHECK" && c != "STATUS" && c != "GC" && c != "VERSION") {
    return EnvironmentError(c.empty() ? "CNI_COMMAND is not set" : "unknown CNI_COMMAND: " + c);
  }
  bool attachment = c == "ADD" || c == "DEL" || c == "CHECK";
  std::string missing;
  auto need = [&](bool needed, const char* name, const std::string& value) {
    if (needed && value.empty()) missing += (missing.empty() ? "" : ",") + std::string(name);
  };
  need(attachment, "CNI_CONTAINERID", request.container_id);
  need(c == "ADD" || c == "CHECK", "CNI_NETNS", request.netns);
  need(attachment, "CNI_IFNAME", request.ifname);
  need(c != "VERSION", "CNI_PATH", request.path);
  if (!missing.empty()) return EnvironmentError("required env variables [" + missing + "] missing");
  if (attachment && !IsIdentifier(request.container_id)) {
    return EnvironmentError("invalid characters in CNI_CONTAINERID: " + request.container_id);
  }
  if (attachment && !IsInterfaceName(request.ifname)) {
    return EnvironmentError("invalid interface name in CNI_IFNAME: " + request.ifname);
  }
  KEELSON_ASSIGN_OR_RETURN(request.args, ParseArgs(get("CNI_ARGS")));
  return {};
}

Outcome<> ReadConfig(Request& request) {
  const object& config = request.config;
  KEELSON_ASSIGN_OR_RETURN(request.version, GetString(config, "cniVersion"));
  if (!IsSupported(request.version)) {
    return CniError{kIncompatibleVersion, "incompatible CNI versions",
                    "config is \"" + request.version + "\", plugin supports 0.3.0 to 1.1.0"};
  }
  KEELSON_ASSIGN_OR_RETURN(request.type, GetString(config, "type"));
  KEELSON_ASSIGN_OR_RETURN(request.network, GetString(config, "name"));
  if (request.network.empty()) return CniError{kInvalidConfig, "missing network name", ""};
  if (!IsIdentifier(request.network)) {
    return CniError{kInvalidConfig, "invalid characters found in network name: " + request.network, ""};
  }
  KEELSON_ASSIGN_OR_RETURN(const object* previous, GetObject(config, "prevResult"));
  if (previous) {
    KEELSON_ASSIGN_OR_RETURN(request.prev_result, ParseResult(*previous));
  }
  if (request.command == "CHECK" && !request.prev_result) {
    return CniError{kInvalidConfig, "CHECK needs prevResult", ""};
  }
  if (request.command != "GC") return {};
  KEELSON_ASSIGN_OR_RETURN(auto attachments, GetObjects(config, "cni.dev/valid-attachments"));
  for (const object* item : attachments) {
    Attachment attachment;
    KEELSON_ASSIGN_OR_RETURN(attachment.container_id, GetString(*item, "containerID"));
    KEELSON_ASSIGN_OR_RETURN(attachment.ifname, GetString(*item, "ifname"));
    request.valid_attachments.push_back(std::move(attachment));
  }
  return {};
}

bool AtLeast(std::string_view version, std::string_view least) { return version >= least; }

Outcome<std::string> Dispatch(const Plugin& plugin, Request& request) {
  if (request.command == "VERSION") {
    object answer;
    KEELSON_ASSIGN_OR_RETURN(std::string version, GetString(request.config, "cniVersion"));
    answer["cniVersion"] = version.empty() ? SupportedVersions().back() : version;
    answer["supportedVersions"] = boost::json::array(SupportedVersions().begin(), SupportedVersions().end());
    return boost::json::serialize(answer);
  }
  KEELSON_RETURN_IF_ERROR(ReadConfig(request));
  auto needs = [&](std::string_view least) -> Outcome<> {
    if (AtLeast(request.version, least)) return {};
    return CniError{kIncompatibleVersion, "config version does not allow " + request.command, ""};
  };
  if (request.command == "ADD") {
    KEELSON_ASSIGN_OR_RETURN(AddResult result, plugin.add(request));
    return boost::json::serialize(ToJson(result, request.version));
  }
  if (request.command == "DEL") {
    KEELSON_RETURN_IF_ERROR(plugin.del(request));
  } else if (request.command == "CHECK") {
    KEELSON_RETURN_IF_ERROR(needs("0.4.0"));
    KEELSON_RETURN_IF_ERROR(plugin.check(request));
  } else {
    KEELSON_RETURN_IF_ERROR(needs("1.1.0"));
    const auto& verb = request.command == "GC" ? plugin.gc : plugin.status;
    if (verb) KEELSON_RETURN_IF_ERROR(verb(request));
  }
  return std::string();
}

Reply Fail(const CniError& error, const std::string& version) {
  object out;
  out["cniVersion"] = version.empty() ? SupportedVersions().back() : version;
  out["code"] = error.code;
  out["msg"] = error.message;
  if (!error.details.empty()) out["details"] = error.details;
  return {1, boost::json::serialize(out)};
}

}  // namespace

CniError CniError::From(const Error& error) {
  int code = kIoFailure;
  if (error.errnum() == 0) {
    if (error.Is(Code::kInvalid) || error.Is(Code::kBadRequest)) code = kInvalidConfig;
    if (error.Is(Code::kUnavailable) || error.Is(Code::kTimeout)) code = kTryAgainLater;
    if (error.Is(Code::kInternal)) code = kInternalFailure;
  }
  return {code, error.message(), ""};
}

Reply RunPlugin(const Plugin& plugin, const Environment& environment, const std::string& config,
                const PluginTable* siblings) {
  Request request;
  request.siblings = siblings;
  if (Outcome<> read = ReadEnvironment(environment, request); !read) return Fail(read.error(), "");
  request.config_text = config;
  if (!config.empty() || request.command != "VERSION") {
    Outcome<object> parsed = ParseJson(config, "network configuration");
    if (!parsed) return Fail(parsed.error(), "");
    request.config = std::move(*parsed);
  }
  Outcome<std::string> answer = Dispatch(plugin, request);
  if (!answer) return Fail(answer.error(), request.version);
  return {0, std::move(*answer)};
}

int PluginMain(const char* called_as, const PluginTable& plugins) {
  std::string_view name = called_as;
  name.remove_prefix(name.find_last_of('/') + 1);  // npos + 1 is 0
  auto found = plugins.find(name);
  if (found == plugins.end()) {
    std::string message = "no CNI plugin is called " + std::string(name) + "; there are:";
    for (const auto& [other, plugin] : plugins) message += " " + std::string(other);
    (void)WriteAll(STDERR_FILENO, message + "\n", "stderr");
    return 1;
  }
  const Plugin& plugin = found->second;
  Environment environment;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    auto equals = text.find('=');
    if (equals != std::string_view::npos && text.starts_with("CNI_")) {
      environment[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
  }
  if (!environment.contains("CNI_COMMAND") && ::isatty(STDIN_FILENO)) {
    std::string about =
        plugin.about + "\nCNI protocol versions supported: 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n";
    return WriteAll(STDERR_FILENO, about, "stderr") ? 0 : 1;
  }
  Result<std::string> config = ReadAll(STDIN_FILENO, "stdin");
  Reply reply =
      config ? RunPlugin(plugin, environment, *config, &plugins) : Fail(CniError::From(config.error()), "");
  if (!reply.output.empty() && !WriteAll(STDOUT_FILENO, reply.output + "\n", "stdout")) return 1;
  return reply.exit_code;
}

}  // namespace keelson::cni
