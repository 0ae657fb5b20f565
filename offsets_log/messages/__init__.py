"""Tables of what keys and values hold: rows that read like Kafka's own JSON, and the construct codecs made of them.

`registry` leads from a record's first two bytes to its tables; a module defines the record types of one subject. A
field of a later release says `since`. What surprises:

* A ``"default": null`` in Kafka's schema is an *empty* list or object in its generated class: a missing tag reads as
  empty, null is written out. The same holds for the tagged struct `classicMemberMetadata`.
* A nullable struct has an int8 before it, but inside a tagged field a uvarint with other values.
* Types 3–8 of 3.7, 9 of 3.9 and 11 and 15 of 4.0 have other fields under the same version number: the layout that
  fits the whole value is taken.
* Type 0 and type 1 keys are different keys for the log cleaner and the same for every coordinator.

A new field of OffsetCommitValue is lost nowhere: JSON Lines tell it, and tables keep the raw value where it is not
the default. To give it a column of its own, search for `topic_id`, the last field that got one, in small and capital
letters.
"""
