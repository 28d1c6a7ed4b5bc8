#include "ctl/pki/kubeconfig.h"

#include <boost/json.hpp>

#include "ctl/output.h"
#include "lib/base/base64.h"
#include "lib/component/document.h"
#include "lib/crypto/certificates.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

std::string Text(const json::object& object, std::string_view field) {
  const json::value* found = object.if_contains(field);
  return found && found->is_string() ? std::string(found->get_string()) : "";
}

// The object `field` of the entry named `name` of a list; of the first entry when `name` is null. Null: there is none.
const json::object* Entry(const json::object& document, std::string_view list, const std::string* name,
                          std::string_view field) {
  const json::value* entries = document.if_contains(list);
  if (!entries || !entries->is_array()) return nullptr;
  for (const json::value& entry : entries->get_array()) {
    if (!entry.is_object() || (name && Text(entry.get_object(), "name") != *name)) continue;
    const json::value* found = entry.get_object().if_contains(field);
    return found ? found->if_object() : nullptr;
  }
  return nullptr;
}

Result<std::string> Data(const json::object& object, std::string_view field) {
  Result<std::string> decoded = DecodeBase64(Text(object, field), Base64::kStd, "\r\n ");
  if (!decoded) return decoded.error().Wrap(field);
  return decoded;
}

Result<> ReadUser(const json::object& user, Kubeconfig& out) {
  KEELSON_ASSIGN_OR_RETURN(out.certificate_pem, Data(user, "client-certificate-data"));
  KEELSON_ASSIGN_OR_RETURN(out.key_pem, Data(user, "client-key-data"));
  out.certificate_file = Text(user, "client-certificate");
  out.token = Text(user, "token");
  return {};
}

json::object UserOf(const Kubeconfig& config) {
  json::object out;
  if (!config.token.empty()) {
    out["token"] = config.token;
  } else if (!config.certificate_file.empty()) {
    out["client-certificate"] = config.certificate_file;
    out["client-key"] = config.certificate_file;
  } else {
    out["client-certificate-data"] = EncodeBase64(config.certificate_pem);
    out["client-key-data"] = EncodeBase64(config.key_pem);
  }
  return out;
}

// A list of one named entry.
json::array Named(const std::string& name, const char* field, json::object value) {
  json::object entry;
  // Sorted, as all mappings here.
  const bool name_first = std::string_view("name") < field;
  if (name_first) entry["name"] = name;
  entry[field] = std::move(value);
  if (!name_first) entry["name"] = name;
  json::array out;
  out.push_back(std::move(entry));
  return out;
}

}  // namespace

std::string KubeconfigText(const Kubeconfig& config) {
  json::object cluster;
  if (!config.ca_pem.empty()) cluster["certificate-authority-data"] = EncodeBase64(config.ca_pem);
  cluster["server"] = config.server;
  const bool with_user = !config.user.empty();
  const std::string context = with_user ? config.user + "@" + config.cluster : "";
  json::object document;
  document["apiVersion"] = "v1";
  document["clusters"] = Named(with_user ? config.cluster : "", "cluster", std::move(cluster));
  document["contexts"] = nullptr;
  document["current-context"] = context;
  document["kind"] = "Config";
  document["users"] = nullptr;
  if (with_user) {
    json::object names;
    names["cluster"] = config.cluster;
    names["user"] = config.user;
    document["contexts"] = Named(context, "context", std::move(names));
    document["users"] = Named(config.user, "user", UserOf(config));
  }
  return ToYaml(document);
}

Result<Kubeconfig> ParseKubeconfig(std::string_view text) {
  component::DocumentProblems problems;
  Result<json::object> parsed = component::ParseDocument(text, problems);
  if (!parsed) return Error(Code::kBadRequest, "no kubeconfig: not a mapping");
  const json::object& document = *parsed;
  Kubeconfig out;
  const std::string context = Text(document, "current-context");
  const json::object* cluster = nullptr;
  if (context.empty()) {
    cluster = Entry(document, "clusters", nullptr, "cluster");
  } else {
    const json::object* names = Entry(document, "contexts", &context, "context");
    if (!names) return Error(Code::kBadRequest, "the current context \"" + context + "\" does not exist");
    out.cluster = Text(*names, "cluster");
    out.user = Text(*names, "user");
    cluster = Entry(document, "clusters", &out.cluster, "cluster");
    const json::object* user = Entry(document, "users", &out.user, "user");
    if (user) KEELSON_RETURN_IF_ERROR(ReadUser(*user, out));
  }
  if (!cluster) return Error(Code::kBadRequest, "the kubeconfig has no cluster");
  out.server = Text(*cluster, "server");
  if (out.server.empty()) return Error(Code::kBadRequest, "the kubeconfig's cluster has no server");
  KEELSON_ASSIGN_OR_RETURN(out.ca_pem, Data(*cluster, "certificate-authority-data"));
  return out;
}

Result<> EnsureKubeconfig(const CertificateStore& store, const KubeconfigPlan& plan,
                          const std::string& cluster, std::chrono::seconds life) {
  KEELSON_ASSIGN_OR_RETURN(const Authority authority, LoadAuthority(store.host, store.directory, "ca"));
  if (store.host.Exists(plan.file)) {
    KEELSON_ASSIGN_OR_RETURN(const std::string text, store.host.Read(plan.file));
    Result<Kubeconfig> present = ParseKubeconfig(text);
    if (!present) {
      return present.error().Wrap("failed to load kubeconfig file " + plan.file +
                                  " that already exists on disk");
    }
    if (present->ca_pem != authority.certificate_pem) {
      return Error(Code::kInvalid,
                   "a kubeconfig file \"" + plan.file + "\" exists already but has got the wrong CA cert");
    }
    if (present->server != plan.server) {
      return Error(Code::kInvalid, "a kubeconfig file \"" + plan.file +
                                       "\" exists already but has got the wrong API Server URL");
    }
    store.out << "[kubeconfig] Using existing kubeconfig file: \"" << plan.file << "\"\n";
    return {};
  }
  if (!authority.key_pem) {
    return Error(Code::kInvalid,
                 "couldn't create a kubeconfig; the key of the CA is not on this machine, and " + plan.file +
                     " is missing");
  }
  store.out << "[kubeconfig] Writing \"" << plan.name << ".conf\" kubeconfig file\n";
  Kubeconfig made;
  made.server = plan.server;
  made.ca_pem = authority.certificate_pem;
  made.cluster = cluster;
  made.user = plan.subject.common_name;
  KEELSON_ASSIGN_OR_RETURN(made.key_pem, crypto::NewPrivateKey(store.key_kind));
  KEELSON_ASSIGN_OR_RETURN(
      made.certificate_pem,
      SignFor(authority, made.key_pem, plan.subject, {"digital signature", "key encipherment", "client auth"},
              life, store.clock));
  return store.host.Write(plan.file, KubeconfigText(made), 0600);
}

}  // namespace keelson::ctl
