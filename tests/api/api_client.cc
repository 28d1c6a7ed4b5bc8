#include "tests/api/api_client.h"

#include <stdexcept>

#include "lib/api/codec/codec.h"
#include "lib/api/types.h"
#include "lib/base/file.h"
#include "lib/base/percent.h"

namespace keelson::apitest {
namespace {

constexpr std::chrono::seconds kTimeout(30);

[[noreturn]] void Die(const std::string& why) { throw std::runtime_error(why); }  // ends one test

json::value ParseJson(std::string_view text) {
  json::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error);
  return error ? json::value() : value;
}

json::value Decode(std::string_view content_type, std::string_view body) {
  if (content_type.starts_with(kProtobuf)) return FromProtobuf(body);
  if (content_type.starts_with(kYaml)) {
    try {
      return ParseYaml(body);
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  return ParseJson(body);
}

// `299 - "text"` with \" and \\ inside.
std::string WarningText(std::string_view header) {
  size_t begin = header.find('"'), end = header.rfind('"');
  if (!header.starts_with("299 - ") || begin == end) return "malformed: " + std::string(header);
  std::string out;
  for (size_t i = begin + 1; i < end; ++i) {
    if (header[i] == '\\') ++i;
    out.push_back(header[i]);
  }
  return out;
}

// A frame is a bare WatchEvent; the object in it has its envelope.
json::value ProtobufEvent(std::string_view frame) {
  metav1::WatchEvent event;
  if (!event.ParseFromArray(frame.data(), static_cast<int>(frame.size()))) return nullptr;
  return json::object{{"type", event.type()}, {"object", FromProtobuf(event.object().raw())}};
}

// Takes whole events off the front of `buffer`.
void TakeEvents(bool protobuf, std::string& buffer, std::vector<json::value>& out) {
  for (;;) {
    if (!protobuf) {
      size_t end = buffer.find('\n');
      if (end == std::string::npos) return;
      out.push_back(ParseJson(std::string_view(buffer).substr(0, end)));
      buffer.erase(0, end + 1);
      continue;
    }
    if (buffer.size() < 4) return;
    size_t size = 0;
    for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(buffer[static_cast<size_t>(i)]);
    if (buffer.size() < 4 + size) return;
    out.push_back(ProtobufEvent(std::string_view(buffer).substr(4, size)));
    buffer.erase(0, 4 + size);
  }
}

}  // namespace

ApiClient::ApiClient(apiserver::TestCluster& cluster) {
  http::ClientOptions options;
  options.base_url = cluster.url();
  options.tls.ca_pem = cluster.pki().ca_pem();
  options.tls.certificate_pem = ReadFile(cluster.pki().dir() + "/admin.crt").value_or("");
  options.tls.key_pem = ReadFile(cluster.pki().dir() + "/admin.key").value_or("");
  auto client = http::Client::Create(std::move(options));
  if (!client) Die(client.error().message());
  client_ = std::move(*client);
}

Reply ApiClient::Do(const std::string& method, const std::string& target, const std::string& body,
                    const std::string& content_type, const std::string& accept) {
  http::ClientRequest request;
  request.method = method;
  request.target = target;
  request.headers = {{"Accept", accept}, {"User-Agent", "fixtures/1.0"}};
  if (!body.empty()) request.headers.Add("Content-Type", content_type);
  request.body = body;
  auto response = client_->Do(request, kTimeout);
  Reply reply;
  if (!response) {
    reply.body = response.error().message();
    return reply;
  }
  reply.status = response->status;
  reply.content_type = std::string(response->headers.Get("Content-Type"));
  reply.body = std::move(response->body);
  for (std::string_view warning : response->headers.All("Warning")) {
    reply.warnings.push_back(WarningText(warning));
  }
  reply.value = Decode(reply.content_type, reply.body);
  return reply;
}

std::vector<json::value> ApiClient::Watch(const std::string& target, size_t count,
                                          const std::string& accept) {
  http::ClientRequest request;
  request.target = target;
  request.headers = {{"Accept", accept}};
  std::vector<json::value> out;
  std::stop_source stop;
  auto reader = client_->Open(request, kTimeout, stop.get_token());
  if (!reader) return out;
  bool protobuf = accept.starts_with(kProtobuf);
  std::string buffer;
  while (out.size() < count) {
    auto piece = (*reader)->Read(stop.get_token(), std::chrono::seconds(2));
    if (!piece || piece->empty()) break;
    buffer += *piece;
    TakeEvents(protobuf, buffer, out);
  }
  if (out.size() > count) out.resize(count);
  return out;
}

std::string PathOf(const api::ResourceInfo& info, const std::string& name_space, const std::string& name,
                   const std::string& subresource) {
  std::string out = info.group.empty() ? "/api/" + std::string(info.version)
                                       : "/apis/" + std::string(info.group) + "/" + std::string(info.version);
  if (info.namespaced && !name_space.empty()) out += "/namespaces/" + name_space;
  out += "/" + std::string(info.resource);
  if (!name.empty()) out += "/" + PercentEncode(name);
  if (!subresource.empty()) out += "/" + subresource;
  return out;
}

std::string PathOfObject(const json::object& object, const std::string& name_space) {
  auto [group, version] = api::SplitApiVersion(StringAt(object, {"apiVersion"}));
  const api::ResourceInfo* info = api::FindKind(group, version, StringAt(object, {"kind"}));
  if (!info) Die("no such kind: " + json::serialize(object));
  std::string own = StringAt(object, {"metadata", "namespace"});
  return PathOf(*info, own.empty() ? name_space : own);
}

std::string ToProtobuf(const json::object& object) {
  api::GroupVersionKind gvk;
  std::tie(gvk.group, gvk.version) = api::SplitApiVersion(StringAt(object, {"apiVersion"}));
  gvk.kind = StringAt(object, {"kind"});
  const api::Descriptor* descriptor = api::FindMessage(gvk.group, gvk.version, gvk.kind);
  if (!descriptor) Die("no such kind: " + json::serialize(object));
  std::unique_ptr<api::Message> message = api::NewObject(descriptor);
  Result<> decoded = api::DecodeJson(json::serialize(object), *message);
  if (!decoded) Die(decoded.error().message());
  return api::EncodeProtobuf(*message, gvk);
}

json::value FromProtobuf(std::string_view bytes) {
  auto envelope = api::OpenEnvelope(bytes);
  if (!envelope) return nullptr;
  api::GroupVersionKind gvk;
  std::tie(gvk.group, gvk.version) = api::SplitApiVersion(envelope->type_meta.api_version);
  gvk.kind = envelope->type_meta.kind;
  const api::Descriptor* descriptor = api::FindMessage(gvk.group, gvk.version, gvk.kind);
  if (!descriptor) return nullptr;
  std::unique_ptr<api::Message> message = api::NewObject(descriptor);
  if (!api::DecodeRaw(envelope->raw, *message)) return nullptr;
  return ParseJson(api::EncodeJson(*message, gvk));
}

}  // namespace keelson::apitest
