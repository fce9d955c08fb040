"""Points and label texts in one encoder: NGAME, DEXA and SiameseXML while they are trained."""
