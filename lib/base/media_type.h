// Media types in the form that headers use: Accept, Content-Type, Accept-Encoding (RFC 9110).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson {

// One clause of an Accept header: "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.8".
struct MediaType {
  std::string type;  // lower case, with the slash
  std::vector<std::pair<std::string, std::string>> parameters;
  double quality = 1;
  std::string_view Parameter(std::string_view name) const;  // empty when absent
};
MediaType ParseMediaType(std::string_view text);
// The clauses in order of preference: by quality, then by how specific they are. Clauses that are no media
// type are left out.
std::vector<MediaType> ParseAccept(std::string_view header);

// Whether a clause of an Accept header covers a type such as "application/json". Wildcards match.
bool Covers(const MediaType& clause, std::string_view type);

bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace keelson
