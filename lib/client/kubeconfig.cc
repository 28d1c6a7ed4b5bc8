#include <yaml-cpp/yaml.h>

#include "lib/base/base64.h"
#include "lib/base/file.h"
#include "lib/client/transport.h"

namespace keelson::client {
namespace {

std::string Text(const YAML::Node& map, const char* key) {
  const YAML::Node value = map[key];
  return value && value.IsScalar() ? value.Scalar() : std::string();
}

// The entry `name` in a list of {name: ..., <key>: {...}}.
Result<YAML::Node> Entry(const YAML::Node& root, const char* list, const std::string& name, const char* key) {
  for (const auto& entry : root[list]) {
    if (Text(entry, "name") == name && entry[key] && entry[key].IsMap()) return entry[key];
  }
  return Error(Code::kNotFound, std::string(key) + " \"" + name + "\" does not exist");
}

class Reader {
 public:
  explicit Reader(const std::string& path) : base_(path.substr(0, path.rfind('/') + 1)) {}

  std::string Path(const std::string& path) const {
    return path.empty() || path[0] == '/' ? path : base_ + path;
  }

  // <key>-data in the document, or else the contents of the file that <key> names. `file` gets that path.
  Result<std::string> Pem(const YAML::Node& map, const std::string& key, std::string& file) const {
    if (std::string data = Text(map, (key + "-data").c_str()); !data.empty()) {
      // With or without padding, and folded over lines as YAML allows.
      Result<std::string> decoded =
          DecodeBase64(std::string_view(data).substr(0, data.find('=')), Base64::kRawStd, "\r\n ");
      if (!decoded) return decoded.error().Wrap(key + "-data");
      return decoded;
    }
    file = Path(Text(map, key.c_str()));
    if (file.empty()) return std::string();
    Result<std::string> text = ReadFile(file);
    if (!text) return text.error().Wrap(key);
    return text;
  }

 private:
  std::string base_;  // relative paths start at the kubeconfig's directory
};

Result<RestConfig> Build(const YAML::Node& root, const std::string& path, const std::string& wanted) {
  std::string name = wanted.empty() ? Text(root, "current-context") : wanted;
  if (name.empty()) return Error(Code::kBadRequest, "no context is current");
  KEELSON_ASSIGN_OR_RETURN(YAML::Node context, Entry(root, "contexts", name, "context"));
  KEELSON_ASSIGN_OR_RETURN(YAML::Node cluster, Entry(root, "clusters", Text(context, "cluster"), "cluster"));
  Reader reader(path);
  RestConfig config;
  config.server = Text(cluster, "server");
  if (config.server.empty()) return Error(Code::kBadRequest, "cluster has no server");
  config.tls_server_name = Text(cluster, "tls-server-name");
  config.insecure = Text(cluster, "insecure-skip-tls-verify") == "true";
  KEELSON_ASSIGN_OR_RETURN(config.ca_pem, reader.Pem(cluster, "certificate-authority", config.ca_file));
  if (Text(context, "user").empty()) return config;
  KEELSON_ASSIGN_OR_RETURN(YAML::Node user, Entry(root, "users", Text(context, "user"), "user"));
  if (user["exec"] || user["auth-provider"]) {
    return Error(Code::kUnimplemented, "credentials by exec or auth-provider are not supported");
  }
  KEELSON_ASSIGN_OR_RETURN(config.certificate_pem,
                           reader.Pem(user, "client-certificate", config.certificate_file));
  KEELSON_ASSIGN_OR_RETURN(config.key_pem, reader.Pem(user, "client-key", config.key_file));
  config.token = Text(user, "token");
  config.token_file = reader.Path(Text(user, "tokenFile"));
  return config;
}

}  // namespace

Result<RestConfig> LoadKubeconfig(const std::string& path, const std::string& context) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  try {
    YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return Error(Code::kBadRequest, "kubeconfig " + path + ": not a mapping");
    Result<RestConfig> config = Build(root, path, context);
    if (!config) return config.error().Wrap("kubeconfig " + path);
    return config;
  } catch (const YAML::Exception& e) {
    return Error(Code::kBadRequest, "kubeconfig " + path + ": " + e.what());
  }
}

}  // namespace keelson::client
