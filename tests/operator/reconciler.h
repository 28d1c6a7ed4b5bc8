// The controller of Fleets: brings ships (ConfigMaps), the register (a file) and status to what each fleet wants.
#pragma once

#include <stop_token>
#include <string>

#include "tests/operator/json_api.h"

namespace keelson::test_operator {

class Reconciler {
 public:
  // `register_dir`: where each fleet has a file while it exists.
  Reconciler(const JsonApi& api, Writes& writes, std::string register_dir)
      : api_(api), writes_(writes), register_dir_(std::move(register_dir)) {}

  // Looks after all fleets until `stop`. An error: the API cannot be reached or refuses; the caller tries again.
  Result<> Run(std::stop_token stop);

 private:
  // One step towards what the fleet wants, from what is there now. Conflicts are no errors: an event follows.
  Result<> Reconcile(const std::string& ns, const std::string& name);
  Result<> Finalize(boost::json::object fleet, const std::string& path);
  Result<int64_t> BringShips(const boost::json::object& fleet, const std::string& ns);
  Result<> Register(const std::string& file, bool there);

  const JsonApi& api_;
  Writes& writes_;
  const std::string register_dir_;
};

}  // namespace keelson::test_operator
