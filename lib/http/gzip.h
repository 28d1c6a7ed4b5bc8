// Content-Encoding: gzip.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace keelson::http {

// The pieces as one gzip stream, at the quickest level: large lists shrink ten times for little.
std::string Gzip(const std::vector<std::shared_ptr<const std::string>>& pieces);
// The other way, for streams that Gzip() made; empty when it is none.
std::string Gunzip(const std::string& gzip);

}  // namespace keelson::http
