#include "controlplane/apiserver/webhook/call_errors.h"

#include <cerrno>

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver::webhook {
namespace {

constexpr size_t kShownBody = 2048;

struct Words {
  std::string_view part;  // of the error's message
  std::string_view cause;
};
constexpr Words kCertificateProblems[] = {
    {"certificate signature failure", "x509: certificate signed by unknown authority"},
    {"self-signed certificate", "x509: certificate signed by unknown authority"},
    {"unable to get local issuer", "x509: certificate signed by unknown authority"},
    {"unable to verify the first", "x509: certificate signed by unknown authority"},
    {"certificate has expired", "x509: certificate has expired or is not yet valid"},
    {"certificate is not yet valid", "x509: certificate has expired or is not yet valid"},
    {"ostname mismatch", "x509: certificate is not valid for this name"},
    {"IP address mismatch", "x509: certificate is not valid for this address"},
};

std::string_view ErrnoText(int errnum) {
  switch (errnum) {
    case ECONNREFUSED:
      return "connection refused";
    case EHOSTUNREACH:
      return "no route to host";
    case ENETUNREACH:
      return "network is unreachable";
    case ECONNRESET:
      return "connection reset by peer";
    default:
      return "";
  }
}

}  // namespace

std::string CauseOf(const Error& error, std::string_view address) {
  const std::string& message = error.message();
  if (error.Is(Code::kTimeout)) return "context deadline exceeded";
  if (error.Is(Code::kTooLarge)) return message;
  if (std::string_view text = ErrnoText(error.errnum()); !text.empty()) {
    return fmt::format("dial tcp {}: connect: {}", address, text);
  }
  if (message.find("resolve ") == 0) {
    return fmt::format("dial tcp: lookup {}: no such host", address.substr(0, address.rfind(':')));
  }
  if (message.ends_with(": timed out")) return fmt::format("dial tcp {}: i/o timeout", address);
  for (const Words& words : kCertificateProblems) {
    if (message.find(words.part) != std::string::npos) {
      return fmt::format("tls: failed to verify certificate: {}", words.cause);
    }
  }
  if (message.find("connection closed") != std::string::npos) return "EOF";
  return message;
}

std::string UnexpectedStatus(int status, std::string_view body) {
  switch (status) {
    case 400:
      return "the server rejected our request for an unknown reason";
    case 401:
      return "the server has asked for the client to provide credentials";
    case 403:
      return body.empty() ? "the server does not allow access to the requested resource"
                          : std::string(body.substr(0, kShownBody));
    case 404:
      return "the server could not find the requested resource";
    case 405:
      return "the server does not allow this method on the requested resource";
    case 406:
      return "the server was unable to respond with a content type that the client supports";
    case 409:
      return "the server reported a conflict";
    case 415:
      return "the server was unable to respond with a content type that the client supports";
    case 422:
      return "the server rejected our request due to an error in our request";
    case 429:
      return "the server has received too many requests and has asked us to try again later";
    case 503:
      return "the server is currently unable to handle the request";
    case 504:
      return "the server was unable to return a response in the time allotted, but may still be processing "
             "the request";
    default:
      break;
  }
  if (status >= 500) {
    return fmt::format("an error on the server ({}) has prevented the request from succeeding",
                       k8s::Quote(body.empty() ? "unknown" : body.substr(0, kShownBody)));
  }
  return fmt::format("the server responded with the status code {} but did not return more information",
                     status);
}

}  // namespace keelson::apiserver::webhook
