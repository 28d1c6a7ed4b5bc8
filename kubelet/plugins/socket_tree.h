// The sockets in a folder and the folders below it, as they come and go. Names that begin with a dot are left
// out. Not thread safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "lib/base/error.h"
#include "lib/event/inotify.h"

namespace keelson::kubelet {

class SocketTree {
 public:
  struct Events {
    std::function<void(const std::string& path)> appeared;  // also: in place of another one
    std::function<void(const std::string& path)> disappeared;
  };
  // Makes the folder if need be.
  static Result<SocketTree> Create(std::string root, Events events);
  // Tells of the sockets that are there.
  Result<> Start();
  // Waits for a change, and tells of it. kTimeout, kCancelled.
  Result<> Wait(std::stop_token stop, std::chrono::milliseconds timeout);

 private:
  SocketTree(std::string root, Events events, event::Inotify inotify);
  void Scan(const std::string& dir);
  void Look(const std::string& path);
  void Forget(const std::string& path);
  void Handle(const event::FileEvent& event);

  const std::string root_;
  const Events events_;
  event::Inotify inotify_;
  std::map<int, std::string> dirs_;       // by watch
  std::map<std::string, ino_t> sockets_;  // by path
};

}  // namespace keelson::kubelet
